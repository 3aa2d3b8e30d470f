"""A simulated training that keeps its own record of times and calls, with other clocks than rlprof's."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from rlprof.api import record
from rlprof.ledger.profiler import Profiler

STEPS = 12
ENV_STEPS = 64
"""Environment steps per training step."""
COLLECTION_SECONDS = 0.030
UPDATE_SECONDS = 0.012
MEMORY = 128 << 20
"""Bytes that the last update touches."""


@dataclass
class Truth:
    """The real times and calls."""

    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    calls: Counter[str] = field(default_factory=Counter)

    def add(self, operation: str, began: float) -> None:
        self.seconds[operation] += time.perf_counter() - began
        self.calls[operation] += 1


def simulate(parent: Path) -> tuple[Path | None, Truth]:
    """Train, recorded by a separate profiler. Returns the folder of the session, and the truth."""
    profiler = Profiler()
    truth = Truth()
    profile = profiler.profile
    recording = record("selftest", dir=parent, profiler=profiler, timeline=10_000, settings={"simulated": True})
    with recording, profile("training_total"):
        total = time.perf_counter()
        for step in range(STEPS):
            with profiler.iteration(), profile("simulated_training_step"):
                began = time.perf_counter()
                _collect(profiler, truth)
                _update(profiler, truth, MEMORY if step == STEPS - 1 else 0)
                truth.add("simulated_training_step", began)
        truth.add("training_total", total)
    return recording.folder, truth


def _collect(profiler: Profiler, truth: Truth) -> None:
    with profiler.profile("simulated_data_collection", category="environment"):
        began = time.perf_counter()
        _work(COLLECTION_SECONDS)
        truth.add("simulated_data_collection", began)
    profiler.add_steps(ENV_STEPS)
    profiler.add_episodes(1)


def _update(profiler: Profiler, truth: Truth, memory: int) -> None:
    with profiler.profile("simulated_model_update", track_memory=True, category="learning"):
        began = time.perf_counter()
        gradients = bytearray(memory)
        for page in range(0, memory, 4096):  # memory that is not touched is not allocated
            gradients[page] = 1
        _work(UPDATE_SECONDS)
        del gradients
        truth.add("simulated_model_update", began)


def _work(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass

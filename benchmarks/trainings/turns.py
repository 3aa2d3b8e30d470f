"""Trainings by turns: several processes train the same, one at a time, as who holds the pipes says.

TURNS names two file descriptors. A few times in an iteration, and at its end, a training writes how long it ran since
it last went on, and whether an iteration has ended, to the one, and goes on when something comes from the other.
Without TURNS it trains straight on. TURNS_TORCH records each iteration with torch.profiler, as its users do.
"""

from __future__ import annotations

import os
import struct
from time import perf_counter
from typing import Any

_ends = [int(number) for number in os.environ.get("TURNS", "").split(",") if number]
_records_with_torch = bool(os.environ.get("TURNS_TORCH"))
_began: float | None = None
_torch_profiler: Any = None


def turn() -> None:
    """An iteration begins; the one before has ended."""
    if _records_with_torch:
        _step_torch_profiler()
    _hand_over(iteration_ended=True)


def pause() -> None:
    """Somewhere inside an iteration."""
    if _began is not None:  # the first one has begun
        _hand_over(iteration_ended=False)


def _hand_over(iteration_ended: bool) -> None:
    global _began
    if not _ends:
        return
    taken = perf_counter() - _began if _began is not None else 0.0
    os.write(_ends[1], struct.pack("d?", taken, iteration_ended))
    if not os.read(_ends[0], 1):
        os._exit(0)  # nobody measures any more
    _began = perf_counter()


def _step_torch_profiler() -> None:
    global _torch_profiler
    if _torch_profiler is None:
        from torch.profiler import ProfilerActivity, profile, schedule  # noqa: PLC0415 - the other arms go without

        _torch_profiler = profile(
            activities=[ProfilerActivity.CPU],
            schedule=schedule(wait=0, warmup=0, active=1),
            on_trace_ready=lambda _: None,
        )
        _torch_profiler.start()
    else:
        _torch_profiler.step()

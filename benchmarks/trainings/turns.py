"""Interleaved trainings: several processes run the same training, and another process lets one of them run at a time.

TURNS names two file descriptors. A few times per iteration, and at its end, a training writes to the second how long it
has run since it last continued, and whether an iteration has ended. It continues when it can read from the first.
Without TURNS it never pauses. TURNS_TORCH records each iteration with torch.profiler, as its users do.
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
    """Call this when an iteration begins, and at the end of the last one."""
    if _records_with_torch:
        _step_torch_profiler()
    _hand_over(iteration_ended=True)


def pause() -> None:
    """Call this inside an iteration."""
    if _began is not None:  # the first iteration has begun
        _hand_over(iteration_ended=False)


def _hand_over(iteration_ended: bool) -> None:
    global _began
    if not _ends:
        return
    taken = perf_counter() - _began if _began is not None else 0.0
    os.write(_ends[1], struct.pack("d?", taken, iteration_ended))
    if not os.read(_ends[0], 1):
        os._exit(0)  # the measurement is over
    _began = perf_counter()


def _step_torch_profiler() -> None:
    global _torch_profiler
    if _torch_profiler is None:
        from torch.profiler import ProfilerActivity, profile, schedule  # noqa: PLC0415 - only this variant needs it

        _torch_profiler = profile(
            activities=[ProfilerActivity.CPU],
            schedule=schedule(wait=0, warmup=0, active=1),
            on_trace_ready=lambda _: None,
        )
        _torch_profiler.start()
    else:
        _torch_profiler.step()

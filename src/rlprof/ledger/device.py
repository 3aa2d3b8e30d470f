"""Asynchronous devices: the interface that rlprof needs, and CUDA through torch."""

from __future__ import annotations

import sys
from typing import Any, Protocol


class Device(Protocol):
    """A device that queues work and runs it after the call has returned. Its own events show when the work ran."""

    @property
    def name(self) -> str: ...

    def record(self) -> Any:
        """Put an event into the queue the current thread works on."""

    def elapsed_ns(self, start: Any, end: Any) -> int | None:
        """The device's time between two events; None until the second has passed. Must not block."""

    def peak(self) -> int:
        """The most bytes allocated at once since the last `reset_peak`."""

    def reset_peak(self) -> int:
        """Start a new peak; returns the bytes allocated now."""


class CudaDevice:
    """The current CUDA device of torch. Records events on the current stream and never synchronises."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self.name: str = torch.cuda.get_device_name()

    def record(self) -> Any:
        event = self._torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def elapsed_ns(self, start: Any, end: Any) -> int | None:
        return round(start.elapsed_time(end) * 1e6) if end.query() else None

    def peak(self) -> int:
        return int(self._torch.cuda.max_memory_allocated())

    def reset_peak(self) -> int:
        self._torch.cuda.reset_peak_memory_stats()
        return int(self._torch.cuda.memory_allocated())


def find_device() -> Device | None:
    """The device that this process already uses, or None. Neither imports torch nor starts a GPU."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    if cuda is None or not hasattr(cuda, "is_initialized") or not cuda.is_initialized():
        return None
    return CudaDevice(torch)

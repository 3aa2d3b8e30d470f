"""Peaks inside spans: the process's by the kernel's high-water mark (core/memory.c), the device's by its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any

from rlprof.ledger.twin.records import UNKNOWN, Entry

try:
    import resource
except ImportError:  # not a POSIX system: no peaks
    resource = None  # type: ignore[assignment]

_UNIT = 1 if sys.platform == "darwin" else 1024


class ProcessMemory:
    """The process's resident peak, started anew for each tracked span and folded into those already open."""

    def __init__(self) -> None:
        self._clear_refs: int | None = None
        self._clearable = True
        self._inherited: int | None = None
        self.peak = 0

    @staticmethod
    def _of_usage() -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT if resource else 0

    @staticmethod
    def _of_status() -> int | None:
        try:
            with open("/proc/self/status", encoding="ascii", errors="replace") as status:
                return next((int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:")), None)
        except OSError:
            return None

    def _high_water(self) -> int:
        """Below the figure that was inherited from the parent process, only /proc is right: see core/memory.c."""
        usage = self._of_usage()
        if self._inherited is None:
            own = self._of_status()
            self._inherited = usage if own is not None and usage > own + (1 << 20) else 0
        if usage > self._inherited:
            return usage
        own = self._of_status()
        return usage if own is None else own

    def _clear(self) -> None:
        try:
            if self._clear_refs is None and self._clearable:
                self._clear_refs = os.open("/proc/self/clear_refs", os.O_WRONLY | os.O_CLOEXEC)
            if self._clear_refs is not None:
                os.write(self._clear_refs, b"5")
        except OSError:
            self.close()
            self._clearable = False

    def fold(self, tracked: Iterable[Entry]) -> None:
        peak = self._high_water()
        self.peak = max(self.peak, peak)
        for entry in tracked:
            entry.memory_peak = max(entry.memory_peak, peak)

    def enter(self, entry: Entry, tracked: Iterable[Entry]) -> None:
        self.fold(tracked)
        self._clear()
        entry.memory_start = entry.memory_peak = self._high_water()

    def exit(self, entry: Entry, tracked: Iterable[Entry]) -> None:
        self.fold(tracked)
        if not self._clearable and entry.memory_peak == entry.memory_start:
            return  # the mark is from an older peak
        node = entry.node
        node.memory_peak = max(node.memory_peak, entry.memory_peak)
        node.memory_rise = max(node.memory_rise, entry.memory_peak - entry.memory_start)

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        if self._clear_refs is not None:
            os.close(self._clear_refs)
            self._clear_refs = None


class DeviceSpans:
    """Device events of spans, waiting to be resolved."""

    def __init__(self, hooks: Any) -> None:
        self._hooks = hooks
        self.device: Any = None
        self.pending: list[tuple[Any, Any, Any]] = []
        self.lost = 0

    def attach(self, device: Any) -> None:
        self.device = device
        self.pending.clear()

    def _call(self, method: str, *args: Any) -> Any:
        if self.device is None:
            return None
        try:
            return getattr(self.device, method)(*args)
        except Exception as error:  # whatever a device does, the training goes on without it
            self._hooks.warn("the device failed; device time and memory are not recorded from here on", error)
            self.attach(None)
            return None

    def _fold(self, tracked: Iterable[Entry]) -> int | None:
        peak: int | None = self._call("peak")
        for entry in tracked:
            if peak is not None and entry.device_peak >= 0:
                entry.device_peak = max(entry.device_peak, peak)
        return peak

    def enter(self, entry: Entry, tracked: Iterable[Entry]) -> None:
        if entry.tracks_memory:
            self._fold(tracked)
            start = self._call("reset_peak")
            entry.device_start = entry.device_peak = UNKNOWN if start is None else start
        entry.device_event = self._call("record")

    def exit(self, entry: Entry, tracked: Iterable[Entry]) -> None:
        end = self._call("record")
        if entry.tracks_memory and entry.device_peak >= 0 and self._fold(tracked) is not None:
            node = entry.node
            node.device_peak = max(node.device_peak, entry.device_peak)
            node.device_rise = max(node.device_rise, entry.device_peak - entry.device_start)
        if end is None:
            return
        self.pending.append((entry.node, entry.device_event, end))
        if len(self.pending) % 256 == 0:
            self.resolve()
        if len(self.pending) > 65536:
            del self.pending[0]
            self.lost += 1

    def resolve(self) -> None:
        """Events pass in the order of the queue, so the first pending one ends the search."""
        done = 0
        for node, start, end in list(self.pending):
            elapsed = self._call("elapsed_ns", start, end)
            if elapsed is None:
                break
            node.device_time += elapsed
            node.device_calls += 1
            done += 1
        del self.pending[:done]

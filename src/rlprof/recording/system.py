"""System samples: CPU, memory and GPU use of this process, its children and the machine."""

from __future__ import annotations

import os
import resource
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from rlprof.recording.procfs import Procfs, all_descendants
from rlprof.session.records import Sample

SEARCH_SECONDS = 10.0
"""Between two full searches for child processes. Only these find children that were started by threads unknown to
Python, because they read the list of every thread."""
SEARCH_SHARE = 1 / 2000
"""Largest share of the time for full searches."""

RESOLUTION = 0.02
"""Seconds by which CPU times from different sources may disagree: the kernel counts other processes in ticks."""

SHORTEST = 0.2
"""Least seconds between two samples for a meaningful rate."""


class SystemSampler:
    """Each call of `sample` covers the time since the last one. The rates of the first sample are None."""

    def __init__(self, clock: Callable[[], int]) -> None:
        """`clock` is the ledger's clock, in ns."""
        self._clock = clock
        self._procfs = Procfs()
        self._devices = _Devices()
        self._children: list[int] = []
        self._found: list[int] = []
        self._next_search = 0.0
        self._known: set[int] = set()
        self._before: tuple[float, float, float, float, float, float | None] | None = None

    def close(self) -> None:
        self._procfs.close()

    def sample(self) -> Sample:
        began = time.thread_time_ns()
        now = time.monotonic()
        self._search_children(now)
        own = time.process_time()
        figures = {pid: found for pid in self._children if (found := self._procfs.process(pid)) is not None}
        children = figures.values()
        # When a child is waited for, its time moves to this process's account of dead children. The sum has no gap.
        below = _reaped() + sum(cpu for cpu, _ in children)
        busy, total = self._procfs.machine_times()
        delay = self._procfs.run_delay()
        cpu = children_cpu = machine_cpu = held_up = None
        then = now if self._before is None else self._before[0]
        if self._before is not None and now - then >= SHORTEST:
            _, own_then, below_then, busy_then, total_then, delay_then = self._before
            cpu = _percent(own - own_then, now - then)
            # A child that is found late adds time from before this interval, so its time in the interval is unknown.
            if not any(seconds > now - then + RESOLUTION for seconds in self._new_times(figures)):
                children_cpu = _percent(below - below_then, now - then)
            machine_cpu = _percent(busy - busy_then, total - total_then)
            if delay is not None and delay_then is not None:
                held_up = _percent(delay - delay_then, now - then)
        self._before = (now, own, below, busy, total, delay)
        self._known = {*figures}
        rss, allocated = self._procfs.memory()
        device_busy, device_memory = self._devices.sample({os.getpid(), *self._children})
        return Sample(
            time=self._clock(),
            weight=round((now - then) * 1e9),
            cpu=cpu,
            children_cpu=children_cpu,
            machine_cpu=machine_cpu,
            held_up=held_up,
            rss=rss,
            allocated=allocated,
            children_rss=sum(size for _, size in children),
            children=len(children),
            machine_available=self._procfs.available(),
            device_busy=device_busy,
            device_memory=device_memory,
            cost=time.thread_time_ns() - began,
        )

    def _new_times(self, figures: dict[int, tuple[float, int]]) -> list[float]:
        return [seconds for pid, (seconds, _) in figures.items() if pid not in self._known]

    def _search_children(self, now: float) -> None:
        if now >= self._next_search:
            began = time.thread_time()
            self._found = all_descendants(os.getpid())
            self._next_search = now + max(SEARCH_SECONDS, (time.thread_time() - began) / SEARCH_SHARE)
            self._procfs.forget_unread()
        threads = [thread.native_id or 0 for thread in threading.enumerate()]
        self._children = list({*self._found, *self._procfs.descendants(os.getpid(), threads)})


def _reaped() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _percent(part: float, whole: float) -> float | None:
    """None if no time has passed, or if a child's time was lost when it ended."""
    return 100 * max(0.0, part) / whole if whole > 0 and part > -RESOLUTION else None


_DRIVERS = ("/dev/nvidiactl", "/dev/dxg", "/dev/nvhost-ctrl-gpu")
"""One of these exists where NVIDIA's driver is installed: on a usual machine, in WSL, on a Jetson."""


class _Devices:
    """NVIDIA GPUs, if nvidia-ml-py and a driver are installed."""

    def __init__(self) -> None:
        self._nvml: Any = None
        self._handles: list[Any] = []
        if sys.platform == "linux" and not any(map(os.path.exists, _DRIVERS)):
            return  # importing the library to find that out takes longer than everything else here
        try:
            import pynvml  # noqa: PLC0415 - optional

            pynvml.nvmlInit()
            self._handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
            self._nvml = pynvml
        except Exception:
            pass  # no library, no driver or no GPU: the figures are None

    def sample(self, pids: set[int]) -> tuple[float | None, int | None]:
        """Percent of time with a kernel running, on the busiest device, and the bytes that these processes hold."""
        if not self._handles:
            return None, None
        try:
            running = [
                process
                for handle in self._handles
                for process in self._nvml.nvmlDeviceGetComputeRunningProcesses(handle)
            ]
            busy = max(float(self._nvml.nvmlDeviceGetUtilizationRates(handle).gpu) for handle in self._handles)
            held = [process.usedGpuMemory for process in running if process.pid in pids]
        except Exception:
            return None, None  # what is allowed depends on the driver
        # In a container, NVML may have other PIDs for the same processes.
        return busy, None if None in held or (running and not held) else sum(held)

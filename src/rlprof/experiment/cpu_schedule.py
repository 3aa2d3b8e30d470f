"""How long a training's processes ran, and how long they were ready without a core, as the kernel reports it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True, slots=True)
class Scheduled:
    """Sums over all threads; 0 if the kernel does not report them."""

    cpu_ns: int = 0
    ready_ns: int = 0

    def __sub__(self, other: Scheduled) -> Scheduled:
        return Scheduled(max(0, self.cpu_ns - other.cpu_ns), max(0, self.ready_ns - other.ready_ns))


def scheduled(pid: int) -> Scheduled:
    """Times of a process and all processes below it, since their start."""
    try:
        process = psutil.Process(pid)
        pids = [pid, *(child.pid for child in process.children(recursive=True))]
    except psutil.Error:
        return Scheduled()
    cpu = ready = 0
    for one in pids:
        with suppress(OSError):
            for task in Path(f"/proc/{one}/task").iterdir():
                with suppress(OSError, ValueError):
                    ran, waited, *_ = (task / "schedstat").read_text().split()
                    cpu, ready = cpu + int(ran), ready + int(waited)
    return Scheduled(cpu, ready)

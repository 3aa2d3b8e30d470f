"""What the kernel says of a training's processes: how long they ran, and how long they were ready and had no core."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True, slots=True)
class Scheduled:
    """Of all threads together; nothing where the kernel does not tell."""

    cpu_ns: int = 0
    ready_ns: int = 0

    def __sub__(self, other: Scheduled) -> Scheduled:
        return Scheduled(max(0, self.cpu_ns - other.cpu_ns), max(0, self.ready_ns - other.ready_ns))


def scheduled(pid: int) -> Scheduled:
    """Of a process and all below it, since their start."""
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

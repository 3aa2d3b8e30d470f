"""Which process is meant by a number that the system gives to another one later."""

from __future__ import annotations

from pathlib import Path

import psutil

_BOOT = Path("/proc/sys/kernel/random/boot_id")


def identity_of(pid: int) -> str | None:
    """What no other process ever has: the system's start and the process's. None where no such process runs."""
    try:
        # The name of the program stands in brackets and may have anything in it, brackets too.
        state, *fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        # Ticks since the system's start: field 22 of proc(5), which counts from 1 and has the state third.
        return None if state in "ZX" else f"{_BOOT.read_text().strip()}/{fields[18]}"
    except (OSError, ValueError, IndexError):
        pass  # it has ended, or there is no /proc
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else f"{process.create_time():.2f}"
    except psutil.Error:
        return None


def runs(pid: int, identity: str, started_ns: int) -> bool:
    """True if the process that has written this identity still runs. An old session has none: then its process must be
    older than its recording."""
    now = identity_of(pid)
    if now is None or identity:
        return now is not None and now == identity
    try:
        return psutil.Process(pid).create_time() < started_ns / 1e9 + 1
    except psutil.Error:
        return False

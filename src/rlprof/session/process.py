"""Identifies a process, because the system reuses process numbers."""

from __future__ import annotations

from pathlib import Path

import psutil

_BOOT = Path("/proc/sys/kernel/random/boot_id")


def identity_of(pid: int) -> str | None:
    """An identity that no other process ever has: start of the system and of the process. None if it does not run."""
    try:
        # The program's name is in brackets and may contain anything, including brackets.
        state, *fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        # Ticks since the system's start: field 22 of proc(5), which counts from 1 and has the state third.
        return None if state in "ZX" else f"{_BOOT.read_text().strip()}/{fields[18]}"
    except (OSError, ValueError, IndexError):
        pass  # the process has ended, or there is no /proc
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else f"{process.create_time():.2f}"
    except psutil.Error:
        return None


def runs(pid: int, identity: str, started_ns: int) -> bool:
    """True if the process with this identity still runs. Old sessions have no identity: then the process must be older
    than its recording."""
    now = identity_of(pid)
    if now is None or identity:
        return now is not None and now == identity
    try:
        return psutil.Process(pid).create_time() < started_ns / 1e9 + 1
    except psutil.Error:
        return False

"""Identifies a process, because the system reuses process numbers."""

from __future__ import annotations

from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")


def stat_of(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the third on: state, parent, ... Raises OSError if the process has ended."""
    # The program's name is in brackets and may contain anything, including brackets.
    return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()


def identity_of(pid: int) -> str | None:
    """An identity that no other process ever has: start of the system and of the process. None if it does not run."""
    try:
        fields = stat_of(pid)
        # Ticks since the system's start: field 22 of proc(5).
        return None if fields[0] in "ZX" else f"{_BOOT.read_text().strip()}/{fields[19]}"
    except (OSError, ValueError, IndexError):
        pass  # the process has ended, or there is no /proc
    import psutil  # noqa: PLC0415 - slow, and not needed where there is a /proc

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
    import psutil  # noqa: PLC0415

    try:
        return bool(psutil.Process(pid).create_time() < started_ns / 1e9 + 1)
    except psutil.Error:
        return False

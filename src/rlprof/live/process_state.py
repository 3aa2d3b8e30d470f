"""What the operating system says about a process, from outside. Only Linux says all of it."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from rlprof.session.process import stat_of

WATCHED_SECONDS = 0.4
"""How long a thread is watched to see whether it waits for the interpreter's lock."""
LEAST_WAITS_PER_SECOND = 50
"""A thread that waits for the lock wakes 200 times per second. rlprof's own thread does nothing else as often."""
MOST_RUN_NS = 200_000
"""It runs for some 20 us each time. A thread that gets the lock now and then runs longer."""


def is_stopped(pid: int) -> bool:
    """True if a process was stopped by SIGSTOP, Ctrl-Z, a debugger or a paused container."""
    try:
        return stat_of(pid)[0] in "Tt" or _is_frozen(pid)
    except (OSError, IndexError):
        pass  # no /proc, or the process has ended
    import psutil  # noqa: PLC0415 - slow, and not needed where there is a /proc

    try:
        return bool(psutil.Process(pid).status() in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP))
    except psutil.Error:
        return False


def _is_frozen(pid: int) -> bool:
    """True in a paused container. Its processes do not look stopped."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/cgroup").read_text(errors="replace").splitlines():
            if line.startswith("0::"):
                events = Path(f"/sys/fs/cgroup{line[3:]}/cgroup.events").read_text()
                return "frozen 1" in events.splitlines()
    return False


def catches(pid: int, signal: int) -> bool:
    """True if a process handles a signal and its main thread does not block it."""
    bit = 1 << (signal - 1)
    status = _status(f"/proc/{pid}/status")
    try:
        return bool(int(status["SigCgt"], 16) & bit) and not int(status["SigBlk"], 16) & bit
    except (KeyError, ValueError):
        return False


def has_open(pid: int, descriptor: int, path: Path) -> bool:
    """True if this file descriptor of a process is that file. A program may close files that it has not opened."""
    with suppress(OSError):
        return os.path.samestat(os.stat(f"/proc/{pid}/fd/{descriptor}"), path.stat())
    return False


class LockWatch:
    """Watches whether a thread waits for Python's interpreter lock.

    Such a thread wakes every 5 ms to see whether it gets the lock. One that waits for a disk sleeps on.
    """

    def __init__(self, pid: int, thread: int) -> None:
        self._thread = pid, thread
        self._began = time.monotonic()
        self._before = _waits_and_run_ns(pid, thread)

    def is_over(self) -> bool:
        return time.monotonic() - self._began >= WATCHED_SECONDS

    def has_waited(self) -> bool:
        """True if the thread seems to have waited for the lock all the time."""
        after = _waits_and_run_ns(*self._thread)
        if self._before is None or after is None:
            return False
        seconds = time.monotonic() - self._began
        waits, run_ns = after[0] - self._before[0], after[1] - self._before[1]
        return waits >= LEAST_WAITS_PER_SECOND * seconds and run_ns < waits * MOST_RUN_NS


def _waits_and_run_ns(pid: int, thread: int) -> tuple[int, int] | None:
    """How often a thread went to sleep, and for how long it has run."""
    try:
        ran = Path(f"/proc/{pid}/task/{thread}/schedstat").read_text().split()[0]
        return int(_status(f"/proc/{pid}/task/{thread}/status")["voluntary_ctxt_switches"]), int(ran)
    except (OSError, LookupError, ValueError):
        return None


def _status(path: str) -> dict[str, str]:
    """A file of proc(5) with lines `name: value`. Empty if it cannot be read."""
    try:
        lines = Path(path).read_text(errors="replace").splitlines()
    except OSError:
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}

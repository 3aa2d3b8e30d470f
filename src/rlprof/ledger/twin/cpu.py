"""Thread CPU time by system call: the twin cannot follow rseq, and is slow enough for it not to matter."""

from __future__ import annotations

import time

from rlprof.ledger.twin.records import Thread


class CpuClock:
    """Finds how long a thread was off the CPU between two readings."""

    def __init__(self, kind: str, fake: bool) -> None:
        if kind not in ("auto", "syscall", "off"):
            raise ValueError(f"cpu is 'auto', 'syscall' or 'off', not {kind!r}")
        possible = hasattr(time, "pthread_getcpuclockid")
        self.kind = "off" if kind == "off" or not (possible or fake) else "fake" if fake else "syscall"
        self.fake = 0

    def open(self, thread: Thread, now: int) -> None:
        """Begin to follow the calling thread."""
        if self.kind == "syscall":
            thread.cpu_clock = time.pthread_getcpuclockid(thread.ident)
        thread.bound = True
        thread.synced_wall = now
        thread.synced_cpu = self._read(thread)

    def collect(self, thread: Thread, now: int) -> int:
        if not thread.bound or self.kind == "off":
            return 0
        try:
            read = self._read(thread)
        except OSError:  # the thread is gone
            return 0
        off = (now - thread.synced_wall) - (read - thread.synced_cpu)
        thread.synced_wall, thread.synced_cpu = now, read
        return off

    def _read(self, thread: Thread) -> int:
        if self.kind == "fake":
            return self.fake
        return time.clock_gettime_ns(thread.cpu_clock) if thread.cpu_clock is not None else 0

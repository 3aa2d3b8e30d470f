"""The few figures of /proc that are read every second, from files that stay open: a sample must cost next to nothing.

psutil reads the same and more, but takes 20 times as long and releases the GIL at each file. It is the fallback on
systems without /proc.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable

import psutil

try:
    from rlprof.ledger._core import read_held
except ImportError:  # with the Python twin a sample costs a little more

    def read_held(file: int, size: int, /) -> bytes:
        return os.pread(file, size, 0)


PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_TICK = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


_ALWAYS = ("stat", "meminfo", "self/statm", "self/schedstat")

MOST_FILES = 32
"""Most files that stay open: the training may need the remaining file descriptors."""


class Procfs:
    """Files of /proc that stay open."""

    def __init__(self) -> None:
        self._files = {name: _open(f"/proc/{name}") for name in _ALWAYS}
        self._read_names = {*_ALWAYS}

    def close(self) -> None:
        for file in self._files.values():
            if file >= 0:
                os.close(file)
        self._files = dict.fromkeys(self._files, -1)

    def machine_times(self) -> tuple[float, float]:
        """Busy seconds and total seconds of all cores since boot."""
        line = self._read("stat", 256)
        if not line.startswith(b"cpu "):
            return _machine_times()
        # user nice system idle iowait irq softirq steal. Guest time, which follows, is already in user time.
        fields = [int(field) / _TICK for field in line.split(b"\n", 1)[0].split()[1:9]]
        total = sum(fields)
        return total - fields[3] - fields[4], total

    def run_delay(self) -> float | None:
        """Seconds in which the main thread was ready to run but had no core. None if the kernel does not report it."""
        fields = self._read("self/schedstat", 128).split()
        return int(fields[1]) / 1e9 if len(fields) > 1 else None

    def available(self) -> int:
        """Bytes of memory that programs could still allocate."""
        text = self._read("meminfo", 512)
        _, found, rest = text.partition(b"MemAvailable:")
        return int(rest.split(None, 1)[0]) * 1024 if found else int(psutil.virtual_memory().available)

    def memory(self) -> tuple[int, int | None]:
        """Resident memory of this process, and all that it has allocated for itself, in bytes."""
        pages = self._read("self/statm", 96).split()
        if len(pages) > 5:
            return int(pages[1]) * PAGE, int(pages[5]) * PAGE
        return int(psutil.Process().memory_info().rss), None

    def process(self, pid: int) -> tuple[float, int] | None:
        """CPU seconds of another process with its dead children, and its resident bytes. None if it has ended."""
        if not _HAS_PROC:
            return _process(pid)
        try:
            # The command in brackets may contain anything, including brackets.
            fields = self._read(f"{pid}/stat", 1024).rpartition(b")")[2].split()
            return sum(map(int, fields[11:15])) / _TICK, int(fields[21]) * PAGE
        except (ValueError, IndexError):
            return None

    def descendants(self, pid: int, threads: Iterable[int]) -> list[int]:
        """The processes below one that these threads of it have started. Each thread has its own list of children.
        Below the first level, only the lists of main threads are read."""
        found: list[int] = []
        lists = [f"{pid}/task/{thread}/children" for thread in threads]
        while lists:
            children = [int(child) for child in self._read(lists.pop(), 4096).split()]
            found += children
            lists += [f"{child}/task/{child}/children" for child in children]
        return found

    def forget_unread(self) -> None:
        """Close files that were not read since the last call: their processes or threads have ended."""
        for name in self._files.keys() - self._read_names:
            if (file := self._files.pop(name)) >= 0:
                os.close(file)
        self._read_names = {*_ALWAYS}

    def _read(self, name: str, size: int) -> bytes:
        self._read_names.add(name)
        file = self._files.get(name)
        if file is None:
            if len(self._files) >= MOST_FILES:
                return _read_once(f"/proc/{name}")
            file = self._files[name] = _open(f"/proc/{name}")
        try:
            found = read_held(file, size) if file >= 0 else b""
        except OSError:
            return b""
        return found if len(found) < 4000 else _read_once(f"/proc/{name}")  # one read returns at most a page


def all_descendants(pid: int) -> list[int]:
    """All processes below one, whichever thread started them. Linux keeps lists of children. Elsewhere psutil must read
    the parent of every process, which takes milliseconds on a busy machine."""
    if not _LISTS_CHILDREN:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    found: list[int] = []
    pending = [pid]
    while pending:
        parent = pending.pop()
        try:
            for thread in os.listdir(f"/proc/{parent}/task"):
                children = [int(child) for child in _read_once(f"/proc/{parent}/task/{thread}/children").split()]
                found += children
                pending += children
        except OSError:  # the process or thread has ended meanwhile
            continue
    return found


def cpu_of(pid: int) -> int:
    """CPU time of all threads of another process in ns; 0 if it has ended."""
    try:
        if sys.platform == "linux":
            return time.clock_gettime_ns(~pid << 3 | _PROCESS_CLOCK)
        times = psutil.Process(pid).cpu_times()
        return round(1e9 * (times.user + times.system))
    except (OSError, psutil.Error):
        return 0


_PROCESS_CLOCK = 2
"""Together with the PID in the upper bits, the id of a process's CPU clock, as clock_getcpuclockid(3) makes it."""
_HAS_PROC = os.path.exists("/proc/self/stat")
_LISTS_CHILDREN = os.path.exists(f"/proc/self/task/{os.getpid()}/children")


def _read_once(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _open(path: str) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1


def _machine_times() -> tuple[float, float]:
    times = psutil.cpu_times()
    total = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
    return total - times.idle - getattr(times, "iowait", 0.0), total


def _process(pid: int) -> tuple[float, int] | None:
    try:
        process = psutil.Process(pid)
        times = process.cpu_times()
        return times.user + times.system + times.children_user + times.children_system, process.memory_info().rss
    except psutil.Error:
        return None

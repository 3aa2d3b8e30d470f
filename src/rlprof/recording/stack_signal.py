"""The second way to the Python stacks of this process, for when rlprof's own thread cannot run.

If native code never gives the interpreter's lock back, no Python code runs in this process any more. Then faulthandler
writes the stacks in a signal handler. The handler is on a real-time signal that the program does not use. Nobody sends
that signal unless the stacks are requested and rlprof's thread does not answer: see `rlprof.live.stacks`.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rlprof.ledger.native import is_free_threaded

MARGIN = 4
"""Real-time signals at both ends of the range are left to programs, which count from there."""
_STATUS = "/proc/self/status"


@dataclass
class _Registered:
    """A handler in this process. A forked process has those of its parent."""

    number: int
    file: int
    identity: tuple[int, int]
    """Device and inode of the file. A program may close files that it has not opened."""
    pid: int


_registered: list[_Registered] = []


class StackSignal:
    """Installs and removes the handler. Both do nothing if anything about it fails."""

    def __init__(self) -> None:
        self._registered: _Registered | None = None

    def install(self, path: Path) -> tuple[int, int] | None:
        """Let the stacks be written to this file. Returns the signal and the file descriptor."""
        if not sys.platform.startswith("linux") or is_free_threaded(getattr(sys, "abiflags", "")):
            return None  # without the lock, a thread may change its stack while another one writes it
        with suppress(Exception):
            inherited = [one for one in _registered if one.pid != os.getpid()]
            number = next((one.number for one in inherited if _is_ours(one.number)), None) or _free_signal()
            if number is None:
                return None
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                os.fchmod(file, 0o600)
                faulthandler.register(number, file=file, all_threads=True, chain=False)
            except BaseException:
                os.close(file)
                raise
            for one in inherited:
                if one.number != number and _is_ours(one.number):
                    faulthandler.unregister(one.number)
                _close(one)
                _registered.remove(one)
            found = os.fstat(file)
            self._registered = _Registered(number, file, (found.st_dev, found.st_ino), os.getpid())
            _registered.append(self._registered)
            return number, file
        return None

    def remove(self) -> None:
        """Undo it, unless the program uses the signal itself by now."""
        mine, self._registered = self._registered, None
        if mine is None or mine.pid != os.getpid():
            return
        with suppress(Exception):
            if mine in _registered:
                _registered.remove(mine)
                if _is_ours(mine.number):
                    faulthandler.unregister(mine.number)
                _close(mine)


def _close(registered: _Registered) -> None:
    """Close the file, unless the program has closed it and the number is another file's by now."""
    with suppress(OSError):
        found = os.fstat(registered.file)
        if (found.st_dev, found.st_ino) == registered.identity:
            os.close(registered.file)


def _free_signal() -> int | None:
    """A signal that the program neither handles nor ignores nor blocks."""
    taken = _mask("SigBlk") | _mask("SigIgn") | _mask("SigCgt")
    for number in range(signal.SIGRTMAX - MARGIN, signal.SIGRTMIN + MARGIN, -1):
        if not taken >> (number - 1) & 1 and signal.getsignal(number) is signal.SIG_DFL:
            return number
    return None


def _is_ours(number: int) -> bool:
    """True while faulthandler's handler is there. Python does not know of it, but of a handler that a program sets."""
    return bool(_mask("SigCgt") >> (number - 1) & 1) and signal.getsignal(number) is signal.SIG_DFL


def _mask(name: str) -> int:
    with open(_STATUS) as file:
        for line in file:
            if line.startswith(f"{name}:"):
                return int(line.split()[1], 16)
    raise OSError(f"{_STATUS} has no {name}")

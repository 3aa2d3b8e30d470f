"""The ways a process ends, and what a recording does at each: the session is completed, and the end stays as it was."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from types import FrameType
from typing import Protocol


class Ending(Protocol):
    """What must be told that the process ends."""

    ending: bool

    def stop(self, how: str) -> None: ...
    def after_fork(self) -> None: ...


_watched: list[Ending] = []
_signals = (signal.SIGTERM, signal.SIGHUP)
_owner = 0
_late: list[int] = []
"""Signals that came while a recording was ending already."""


def watch(recording: Ending) -> None:
    """See to it that the recording is stopped when the process ends."""
    global _owner
    if not _watched:
        _owner = os.getpid()
        atexit.register(_at_exit)
        if threading.current_thread() is threading.main_thread():
            for number in _signals:
                # Whoever has a handler of their own, or ignores the signal, keeps it.
                if signal.getsignal(number) is signal.SIG_DFL:
                    signal.signal(number, _on_signal)
    _watched.append(recording)


def forget(recording: Ending) -> None:
    """It has stopped."""
    if recording in _watched:
        _watched.remove(recording)
    if _watched:
        return
    atexit.unregister(_at_exit)
    _put_back()
    if _late:
        os.kill(os.getpid(), _late.pop())


def outcome(error: BaseException | None) -> str:
    """How a run ended, in a few words."""
    if error is None:
        return "finished"
    if isinstance(error, SystemExit):
        return "finished" if error.code in (None, 0) else f"exit {error.code}"
    return f"{type(error).__name__}: {error}".strip(": ")[:500]


def _put_back() -> None:
    if threading.current_thread() is threading.main_thread():
        for number in _signals:
            if signal.getsignal(number) is _on_signal:
                signal.signal(number, signal.SIG_DFL)


def _at_exit() -> None:
    # At a prompt, the last exception is not what ends the process.
    uncaught = None if hasattr(sys, "ps1") else getattr(sys, "last_value", None)
    for recording in list(_watched):
        recording.stop(outcome(uncaught))


def _on_signal(number: int, _frame: FrameType | None) -> None:
    if os.getpid() == _owner:
        if any(recording.ending for recording in _watched):
            _late.append(number)  # it interrupted the very end: let it come to that first
            return
        for recording in list(_watched):
            recording.stop(signal.Signals(number).name)
    # The process dies of the signal, as it would have alone.
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _after_fork_in_child() -> None:
    if not _watched:
        return
    for recording in _watched:
        recording.after_fork()
    _watched.clear()
    atexit.unregister(_at_exit)
    _put_back()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)

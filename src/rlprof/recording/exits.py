"""The ways a process ends, and what a recording does at each: the session is completed, and the end stays as it was."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from contextlib import suppress
from types import FrameType
from typing import Protocol

from rlprof.recording.silent_exits import Departures
from rlprof.session.secrets import mask_text

try:
    from rlprof.ledger import _core
except ImportError:  # it was not built; then a signal may be seen late
    _core = None  # type: ignore[assignment]


class Ending(Protocol):
    """What must be told that the process ends."""

    ending: bool
    ended: bool

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
        _at_exit_of_worker()
        _departures.install()
    # As the first process of a container it would survive these signals without a handler, so it gets none.
    if threading.current_thread() is threading.main_thread() and _owner != 1:
        for number in _signals:
            # Whoever has a handler of their own, or ignores the signal, keeps it.
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, _on_signal)
                if _core is not None:
                    _core.signal_follow(number)
    _watched.append(recording)


def _at_exit_of_worker() -> None:
    """Processes that multiprocessing forks leave without atexit, but call its own finalizers."""
    multiprocessing = sys.modules.get("multiprocessing.process")
    if multiprocessing is not None and multiprocessing.parent_process() is not None:
        from multiprocessing.util import Finalize  # noqa: PLC0415 - only where it is in use already

        Finalize(None, _at_exit, exitpriority=100)


def forget(recording: Ending) -> None:
    """It has stopped."""
    if recording in _watched:
        _watched.remove(recording)
    if not _watched:
        atexit.unregister(_at_exit)
        _put_back()
    if _late and not any(other.ending for other in _watched):
        _die(_late.pop())


def outcome(error: BaseException | None) -> str:
    """How a run ended, in a few words."""
    if error is None:
        return "finished"
    try:
        if isinstance(error, SystemExit):
            return "finished" if error.code is None or error.code == 0 else mask_text(f"exit {error.code}"[:5000])[:500]
        return mask_text(f"{type(error).__name__}: {error}".strip(": ")[:5000])[:500]
    except Exception:  # an exception that cannot say what it is
        return type(error).__name__


def _put_back() -> None:
    _departures.remove()
    if threading.current_thread() is threading.main_thread():
        for number in _signals:
            if signal.getsignal(number) is _on_signal:
                signal.signal(number, signal.SIG_DFL)


def _at_exit() -> None:
    # At a prompt, the last exception is not what ends the process.
    uncaught = None if hasattr(sys, "ps1") else getattr(sys, "last_value", None)
    _stop_all("ended" if uncaught is None else outcome(uncaught))
    if type(uncaught) is KeyboardInterrupt:
        _remind_of_interrupt()


def _stop_all(how: str) -> None:
    for recording in list(_watched):
        recording.stop(how)


_departures = Departures(_stop_all)


def _remind_of_interrupt() -> None:
    """Python remembers that Ctrl-C ended the program, and then dies of the signal, as a shell expects. Any `exec` of a
    text makes it forget, such as every dataclass that is imported to write the report; and one such as this brings it
    back."""
    with suppress(KeyboardInterrupt):
        exec("raise KeyboardInterrupt")


def repeat_signals() -> None:
    """Called now and then from another thread. One that came when the main thread was about to wait would be seen only
    after that; sent again, it interrupts the wait."""
    for number in _signals:
        if _core is not None and _core.signal_unseen(number):
            signal.pthread_kill(threading.main_thread().ident or 0, number)


def _on_signal(number: int, _frame: FrameType | None) -> None:
    if _core is not None:
        _core.signal_seen(number)
    if os.getpid() == _owner:
        if not any(recording.ending for recording in _watched):
            _stop_all(signal.Signals(number).name)
        if any(recording.ending for recording in _watched):
            _late.append(number)  # it interrupted a flush, or the very end: let it come to that first
            return
    _die(number)


def _die(number: int) -> None:
    """Of the signal, as the process would have alone."""
    _stop_all(signal.Signals(number).name)
    if threading.current_thread() is threading.main_thread():
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

"""The ways a process can end. At each, the session is completed, and the process ends as it would without rlprof."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from contextlib import suppress
from types import FrameType
from typing import Protocol

from rlprof.recording.silent_exits import SilentExits
from rlprof.session.secrets import mask_text

try:
    from rlprof.ledger import _core
except ImportError:  # not built: a signal may then be seen late
    _core = None  # type: ignore[assignment]


class Ending(Protocol):
    """A recording that must be stopped before the process ends."""

    ending: bool
    ended: bool
    left_early: bool
    """An exit or an exception ends the program, and not its last line."""

    def stop(self, how: str) -> None: ...
    def after_fork(self) -> None: ...


_watched: list[Ending] = []
_signals = (signal.SIGTERM, signal.SIGHUP)
_owner = 0
_late: list[int] = []
"""Signals that arrived while a recording was already ending."""


def watch(recording: Ending) -> None:
    """Stop the recording when the process ends."""
    global _owner
    if not _watched:
        _owner = os.getpid()
        atexit.register(_at_exit)
        _at_exit_of_worker()
        if _core is not None:
            _core.exit_follow()
        _silent_exits.install()
    # The first process of a container survives these signals if it has no handler, so it gets none.
    if threading.current_thread() is threading.main_thread() and _owner != 1:
        for number in _signals:
            # A program that handles or ignores the signal itself keeps doing so.
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, _on_signal)
                if _core is not None:
                    _core.signal_follow(number)
    _watched.append(recording)


def _at_exit_of_worker() -> None:
    """Processes forked by multiprocessing exit without atexit, but call multiprocessing's own finalizers."""
    multiprocessing = sys.modules.get("multiprocessing.process")
    if multiprocessing is not None and multiprocessing.parent_process() is not None:
        from multiprocessing.util import Finalize  # noqa: PLC0415 - only if it is already in use

        Finalize(None, _at_exit, exitpriority=100)


def forget(recording: Ending) -> None:
    """The recording has stopped."""
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
            return "finished" if error.code is None or error.code == 0 else _exit(error.code)
        return mask_text(f"{type(error).__name__}: {error}".strip(": ")[:5000])[:500]
    except Exception:  # an exception that cannot be printed
        return type(error).__name__


def _exit(code: object) -> str:
    """`exit 3`, or `exit 1: no reward`: Python prints a code that is no number, and exits with 1."""
    return mask_text(f"exit {code if isinstance(code, int) else f'1: {code}'}"[:5000])[:500]


def _put_back() -> None:
    _silent_exits.remove()
    if threading.current_thread() is threading.main_thread():
        for number in _signals:
            if signal.getsignal(number) is _on_signal:
                signal.signal(number, signal.SIG_DFL)


def _at_exit() -> None:
    code = None if _core is None else _core.exit_code()
    # At a prompt, the last exception is not what ends the process.
    uncaught = None if code is not None or hasattr(sys, "ps1") else getattr(sys, "last_value", None)
    for recording in _watched:
        recording.left_early = code is not None or uncaught is not None
    _stop_all(outcome(uncaught) if uncaught is not None else _exit(code) if code else "ended")
    if type(uncaught) is KeyboardInterrupt:
        _remind_of_interrupt()


def _stop_all(how: str) -> None:
    for recording in list(_watched):
        recording.stop(how)


_silent_exits = SilentExits(_stop_all)


def _remind_of_interrupt() -> None:
    """Python remembers that Ctrl-C ended the program, and then kills itself with the signal, as a shell expects. Any
    `exec` of a text resets that memory, and importing a dataclass to write the report is such an `exec`. This one
    restores it."""
    with suppress(KeyboardInterrupt):
        exec("raise KeyboardInterrupt")


def repeat_signals() -> None:
    """Called now and then from another thread. A signal that arrives when the main thread is about to wait is seen only
    after the wait. Sent again, it interrupts the wait."""
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
            _late.append(number)  # it interrupted a flush, or the end of the run, which must finish first
            return
    _die(number)


def _die(number: int) -> None:
    """End by the signal, as the process would without rlprof."""
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

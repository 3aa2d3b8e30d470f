"""A thread that the program does not see.

A training may wait until `threading.active_count()` is 1, or list its threads. Both give what they would give without
rlprof, because this thread is not one of the threading module's.
"""

from __future__ import annotations

import _thread
from collections.abc import Callable


class Background:
    """Runs a function, at most until the process ends. Raises RuntimeError if no thread can be started."""

    def __init__(self, function: Callable[[], None]) -> None:
        self._function = function
        self._running = _thread.allocate_lock()
        self._running.acquire()
        self._ident = _thread.start_new_thread(self._run, ())

    def _run(self) -> None:
        try:
            self._function()
        finally:
            self._running.release()

    @property
    def is_current(self) -> bool:
        """True if it is the calling thread."""
        return self._ident == _thread.get_ident()

    def join(self, timeout: float = -1) -> None:
        """Wait until the function has returned."""
        if self._running.acquire(timeout=timeout):
            self._running.release()

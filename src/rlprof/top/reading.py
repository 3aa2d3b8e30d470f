"""Reads the session on two threads, so that a slow disk never delays a key."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from rlprof.errors import RlprofError
from rlprof.live.frame import Frame
from rlprof.live.priority import give_way

ENDED_SECONDS = 5.0
"""Least time between two readings of a run that has ended."""
REFRESH_SECONDS = 1.0
PATIENCE = 0.5
"""Seconds to wait for a thread at the end. One that waits for a disk is left behind."""


class Source(Protocol):
    """What is needed of `rlprof.live.feed.Feed`."""

    def frame(self) -> Frame: ...
    def refresh(self, force: bool = False) -> bool: ...


class Reading:
    """Calls `show` with each new frame, and `fail` with the reason if there is none. Both are called on its threads."""

    def __init__(
        self, source: Source, interval: float, show: Callable[[Frame], None], fail: Callable[[str], None]
    ) -> None:
        self._source, self._interval, self._show, self._fail = source, interval, show, fail
        self._stopped = threading.Event()
        self._wake = threading.Event()
        self._threads = [
            threading.Thread(target=self._read_frames, name="rlprof top frames", daemon=True),
            threading.Thread(target=self._read_report, name="rlprof top report", daemon=True),
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._wake.set()
        for thread in self._threads:
            thread.join(PATIENCE)

    def _read_frames(self) -> None:
        give_way()  # below a training, the other threads of this process pass its output on
        while not self._stopped.is_set():
            self._wake.clear()
            wait = self._interval
            try:
                frame = self._source.frame()
                wait = wait if frame.is_running else max(wait, ENDED_SECONDS)
                self._show(frame)
            except (RlprofError, OSError) as error:
                self._fail(str(error))
            self._wake.wait(wait)

    def _read_report(self) -> None:
        give_way()
        while not self._stopped.is_set():
            try:
                if self._source.refresh():
                    self._wake.set()
            except (RlprofError, OSError):
                pass  # the frame has the reason
            self._stopped.wait(max(REFRESH_SECONDS, self._interval))

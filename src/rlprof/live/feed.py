"""Reads one session again and again, for a view: some rows every second, and the whole session now and then."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rlprof.analysis.changes import Change, changes
from rlprof.analysis.facts import UNENDED
from rlprof.analysis.report import Report, build_report
from rlprof.analysis.window import window
from rlprof.errors import RlprofError
from rlprof.live.details import operation_of, past_of
from rlprof.live.frame import Frame, OperationDetail, PastIteration
from rlprof.live.making import frame_of
from rlprof.live.reading import Reader, Reading
from rlprof.session.folder import find_database
from rlprof.session.live import LiveSession
from rlprof.session.reader import Session

LEAST_SECONDS = 5.0
"""Between two readings of the whole session."""
SOON_SECONDS = 1.0
"""The same as long as there is nothing to report."""
PATIENCE = 100.0
"""A reading of the whole session is repeated after so many times the CPU time that it took: 1 % of a core at most."""
MOST_BACK = 10_000


class Feed:
    """Frames of one session. `frame` and `refresh` may be called from different threads."""

    def __init__(self, given: str | os.PathLike[str], now: Callable[[], float] = time.time) -> None:
        self.path = find_database(given)
        self.folder: Path = self.path.parent
        self.report: Report | None = None
        """As of the newest reading of the whole session."""
        self.problem = ""
        """Why the whole session could not be read the last time."""
        self._now = now
        self._changes: tuple[Change, ...] = ()
        self._last: Frame | None = None
        self._whole_of: tuple[int, str] | None = None
        """The flush that the report was made from, and how the run had ended."""
        self._due = 0.0
        self._reading_one = threading.Lock()
        self._reading_whole = threading.Lock()
        self._reader = Reader(self.path)

    def __enter__(self) -> Feed:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Nothing is kept open between two readings."""

    def frame(self) -> Frame:
        """The session at this moment. If it cannot be read, the last frame with the reason.

        Raises RlprofError if it could never be read.
        """
        with self._reading_one:
            try:
                self._last = frame_of(self.folder, self._read(), self.report, self._changes, self._now())
                if self.problem and not self._last.problem:
                    self._last = replace(self._last, problem=self.problem)
            except (RlprofError, OSError) as error:
                if self._last is None:
                    raise
                age = max(0.0, self._now() - self._last.written) if self._last.is_running else self._last.age_s
                self._last = replace(self._last, problem=self._gone(error), age_s=age)
            return self._last

    def refresh(self, force: bool = False) -> bool:
        """Read the whole session, if that is due. True if there is a new report."""
        if not self._reading_whole.acquire(blocking=force):
            return False
        try:
            if not force and time.monotonic() < self._due:
                return False
            began = time.thread_time()
            found = self._read_whole()
            spent = time.thread_time() - began
            least = LEAST_SECONDS if self.report is not None else SOON_SECONDS
            self._due = time.monotonic() + max(least, PATIENCE * spent)
            return found
        finally:
            self._reading_whole.release()

    def past(self, back: int) -> PastIteration | None:
        """The newest ended iteration for 0, the one before it for 1, and so on. None if there are not so many."""
        if not 0 <= back <= MOST_BACK:
            return None
        try:
            with self._reading_one, LiveSession(self.path) as session:
                found = session.newest_iterations(back + 1)
                if len(found) <= back:
                    return None
                gains = session.gains_of(found[:1])
                self._reader.find(session, {gain.node for gain in gains})
                seen = window(gains, self._reader.places, session.cost, with_beside=True)
                return past_of(found[0], seen, session.info, self._reader.categories)
        except (RlprofError, OSError):
            return None

    def operation(self, name: str) -> OperationDetail | None:
        """An operation as of the newest report. None if it is unknown."""
        return None if self.report is None else operation_of(self.report, name)

    def _read(self) -> Reading:
        reading = self._reader.read()
        # The end of a run comes with its last figures: no view shows the end with figures from before.
        whole = (reading.state.time if reading.state else 0, reading.ended)
        if reading.ended not in UNENDED and self._whole_of not in (None, whole):
            self._due = 0.0
        return reading

    def _read_whole(self) -> bool:
        try:
            with Session(self.path) as session:
                if session.state is None:
                    return False
                report = build_report(session)
                whole = (session.state.time, report.facts.ended)
                if self._whole_of == whole:
                    return False
                operation = {node.id: node.operation for node in session.snapshot().nodes if node.operation}
                self._changes = tuple(changes(session, session.iterations(), operation))
                self.report, self._whole_of, self.problem = report, whole, ""
                return True
        except (RlprofError, OSError) as error:
            self.problem = self._gone(error)
            return False

    def _gone(self, error: Exception) -> str:
        if not self.path.exists():
            return f"The session was deleted: {self.path} is gone."
        text = str(getattr(error, "strerror", None) or error)
        return text if text.endswith(".") else f"{text}."

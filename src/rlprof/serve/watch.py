"""One session that pages look at: its frames and reports, read once for all of them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rlprof.analysis.facts import RUNNING
from rlprof.analysis.report import Report
from rlprof.capture.captures import Request
from rlprof.capture.running import RunningCapture
from rlprof.capture.torch.capture import TRACE
from rlprof.errors import RlprofError, UnreadableError
from rlprof.list.sessions import UNREADABLE
from rlprof.live.feed import Feed
from rlprof.live.frame import Frame
from rlprof.render.html.markup import prose
from rlprof.serve.files import address, label
from rlprof.serve.now import now_of
from rlprof.serve.pump import Pump, event
from rlprof.serve.rendered import Rendered, encoded
from rlprof.serve.runs import is_replaced

DELETED = "deleted"
"""State of a session whose folder is gone. Its last frame does not know that."""
INTERVAL = 1.0
"""Seconds between two frames."""
MOST_OUTCOMES = 3
_REPLACED = "The session of this run is not a plain file in its folder any more, so it is not read."
CAPTURED = Request(step="iteration", warmup_steps=1, active_steps=3)
"""The trace that the button captures: the defaults of `rlprof capture`, in iterations."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a page has: the number of its frame, and the version of its report."""

    frame: int = 0
    report: int = 0


class Watch(Pump[Seen]):
    """A session. Everything that reads runs in the threads of the executor."""

    def __init__(self, folder: Path, threads: Executor, feed: Callable[[Path], Feed]) -> None:
        super().__init__()
        self.folder = folder
        self.frame: Frame | None = None
        self.rendered = Rendered()
        self.problem = ""
        self._make, self._threads = feed, threads
        self._feed: Feed | None = None
        self._text, self._number = "", 0
        self._since: dict[int, bytes] = {}
        self._reading = asyncio.Lock()
        self._refreshing: asyncio.Task[bool] | None = None
        self._capturing = False
        self._starting = threading.Lock()
        self._outcomes: list[dict[str, str]] = []
        self._is_replaced = False

    @property
    def report(self) -> Report | None:
        return self._feed.report if self._feed is not None else None

    @property
    def version(self) -> int:
        return self.rendered.version

    async def ready(self) -> None:
        """Read the session as it is now. Raises RlprofError if it cannot be read at all."""
        await self._read_frame()
        if self.over or self.is_pumping:
            return
        await self._refresh(lambda: self.rendered.version == 0)
        await self._end_if_ended()
        self._publish_frame()

    async def work(self) -> float:
        began = asyncio.get_running_loop().time()
        try:
            await self._read_frame()
        except RlprofError as error:
            self.problem = str(error)
        if self._is_replaced:
            await self._in_thread(self._say_that_it_is_gone, UNREADABLE)
            self.over = True
        elif not await self._end_if_ended() and (self._refreshing is None or self._refreshing.done()):
            self._refreshing = asyncio.create_task(self._refresh(lambda: False))
        self._publish_frame()
        return max(0.2, INTERVAL - (asyncio.get_running_loop().time() - began))

    async def _end_if_ended(self) -> bool:
        """Make the final report of a run that has ended, or is gone. Nothing changes after that."""
        if self.frame is None or (self.frame.is_running and self.folder.exists()):
            return False
        await self._refresh(lambda: self.report is None or self.report.facts.ended.startswith(RUNNING))
        if not self.folder.exists():
            await self._in_thread(self._say_that_it_is_gone, DELETED)
        self.over = not self._capturing
        return True

    def news(self, cursor: Seen) -> tuple[bytes, Seen]:
        text = b""
        if self.rendered.version > cursor.report:
            text += self._report_since(cursor.report)
        if self._number > cursor.frame:
            text += event("frame", self._text)
        return text, Seen(self._number, self.rendered.version)

    def frame_text(self) -> str:
        """The newest frame as JSON."""
        assert self.frame is not None
        state = UNREADABLE if self._is_replaced else DELETED if self.over and self.frame.is_running else None
        frame = self.frame if state is None else replace(self.frame, state=state)
        extra: dict[str, Any] = {"outcomes": self._outcomes, "capturing": self._capturing}
        if self.problem:
            extra["problem"] = prose(self.problem)
        return encoded({**now_of(frame), **extra})

    async def _refresh(self, force: Callable[[], bool]) -> bool:
        """Read the whole session if that is due, or if `force` says so, and render it. True if something is new.

        `force` is called after waiting: of many pages that are loaded at once, only the first one reads.
        """
        async with self._reading:
            rendered = await self._in_thread(self._render, force())
            if rendered is None:
                return False
            self.rendered, self._since = rendered, {}
            self.publish()
            return True

    def capture(self) -> None:
        """Request a torch trace of the running training. Its outcome comes with the frames.

        Raises RlprofError if the training does not run. Runs in a thread.
        """
        with self._starting:
            if self._capturing:
                raise RlprofError("A trace is being captured already. Wait for it.")
            running = RunningCapture(self.folder, CAPTURED)
            self._capturing = True
        # Not one of the executor's threads: it waits for minutes, and the server must be able to stop meanwhile.
        threading.Thread(target=self._wait_for, args=(running,), daemon=True).start()

    def close_feed(self) -> None:
        if self._feed is not None:
            self._feed.close()

    def _wait_for(self, running: RunningCapture) -> None:
        try:
            trace = running.wait()
            path = trace.relative_to(self.folder).as_posix()
            found = {"text": label(path, TRACE), "href": address(self.folder.name, path, TRACE)}
        except (RlprofError, OSError, ValueError) as error:
            found = {"text": prose(str(error).replace(str(self.folder), "This run")), "href": ""}
        self._outcomes = [*self._outcomes, found][-MOST_OUTCOMES:]
        self._capturing = False

    def _render(self, force: bool) -> Rendered | None:
        assert self._feed is not None
        if is_replaced(self.folder):
            return None  # the next frame says so
        fresh = self._feed.refresh(force)
        report = self._feed.report
        if report is None or not (fresh or self.rendered.version == 0):
            return None
        return self.rendered.after(report, self.folder)

    def _say_that_it_is_gone(self, how: str) -> None:
        """The report is the last one, and says that the training runs."""
        if self.report is None or not self.report.facts.ended.startswith(RUNNING):
            return
        last = replace(self.report, facts=replace(self.report.facts, ended=how))
        self.rendered, self._since = self.rendered.after(last, self.folder), {}

    async def _read_frame(self) -> None:
        self.frame = await self._in_thread(self._frame_now)
        self.problem = ""

    def _frame_now(self) -> Frame:
        # Before each reading: the files are opened by their names again, and a link may lead anywhere.
        if is_replaced(self.folder):
            self._is_replaced = True
            raise UnreadableError(_REPLACED)
        if self._feed is None:
            self._feed = self._make(self.folder)
        return self._feed.frame()

    def _publish_frame(self) -> None:
        if self.frame is None:
            return
        text = self.frame_text()
        if text != self._text:
            self._text, self._number = text, self._number + 1
        self.publish()

    def _report_since(self, version: int) -> bytes:
        if version not in self._since:
            self._since[version] = event("report", self.rendered.since(version), self.mark)
        return self._since[version]

    async def _in_thread(self, call: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call, *arguments)

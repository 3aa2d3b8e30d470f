"""Reads something again and again as long as somebody looks at it, once for everybody who does."""

from __future__ import annotations

import asyncio
import secrets
import traceback
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Generic, TypeVar

Cursor = TypeVar("Cursor")
"""What one page has seen already."""

LINGER = 3.0
"""Seconds that reading goes on without a page, so that one that is loaded again does not start it again."""
RETRY = 5.0
"""Seconds after reading has failed in a way that no session should cause."""
END = b"event: end\ndata: {}\n\n"


class Pump(ABC, Generic[Cursor]):
    """One source of events. All methods but `work`'s threads run on the event loop."""

    def __init__(self) -> None:
        self.over = False
        """True once nothing will change any more."""
        self.epoch = secrets.token_urlsafe(6)
        """Versions are counted from 1, so they mean nothing to another server, or to a session that is read anew."""
        self.idle_since: float | None = asyncio.get_running_loop().time()
        """Time of the event loop since when no page looks. None while one does."""
        self._viewers = 0
        self._closed = False
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    @property
    def is_pumping(self) -> bool:
        return self._task is not None

    @property
    @abstractmethod
    def version(self) -> int:
        """The version of what pages are given when they are loaded."""

    @property
    def mark(self) -> str:
        """What a page has, in the words that it sends back: see `version_in`."""
        return f"{self.epoch}.{self.version}"

    def version_in(self, mark: str) -> int:
        """The version that a page has. 0 if it has none, or one from elsewhere."""
        epoch, _, version = mark.rpartition(".")
        return int(version) if epoch == self.epoch and version.isdecimal() and len(version) < 10 else 0

    @abstractmethod
    async def work(self) -> float:
        """Read once. Returns the seconds until the next time."""

    @abstractmethod
    def news(self, cursor: Cursor) -> tuple[bytes, Cursor]:
        """The events that a page has not seen yet, and what it has seen then."""

    async def events(self, cursor: Cursor, alive: Callable[[], bool]) -> AsyncIterator[bytes]:
        """The events for one page, as long as it is open. It skips what it is too slow for."""
        self._viewers += 1
        self.idle_since = None
        if self._task is None and not self.over:
            self._task = asyncio.create_task(self._run())
        try:
            while alive():
                over = self.over  # before the news: what comes while they are sent is sent before the end
                text, cursor = self.news(cursor)
                if text:
                    yield text
                if self._closed:
                    return
                if over:
                    yield END
                    return
                if self.over:
                    continue
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), 1.0)
        finally:
            self._viewers -= 1
            if not self._viewers:
                self.idle_since = asyncio.get_running_loop().time()

    def publish(self) -> None:
        """Wake everybody who waits for something new."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def close(self) -> None:
        """The server ends. The pages are not told that the training has ended."""
        self._closed = True
        self.publish()
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        failed = False
        try:
            while not self.over:
                if self.idle_since is not None and loop.time() - self.idle_since > LINGER:
                    break
                try:
                    pause = await self.work()
                except Exception:
                    # The pages keep what they have. Without these lines, nobody would know why.
                    if not failed:
                        traceback.print_exc()
                    pause, failed = RETRY, True
                if not self.over:
                    await asyncio.sleep(pause)
        finally:
            self._task = None


def event(name: str, data: str, id: str | None = None) -> bytes:
    """One server-sent event. Its data is JSON, which has no line breaks."""
    number = f"id: {id}\n" if id is not None else ""
    return f"{number}event: {name}\ndata: {data}\n\n".encode()

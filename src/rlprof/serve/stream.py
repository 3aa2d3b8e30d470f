"""Server-sent events over HTTP: a stream that ends when its page is closed."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from starlette.types import Receive, Scope, Send

from rlprof.serve.pump import Cursor, Pump

MOST_STREAMS = 4
"""Open streams of one browser. It has six connections to a server, and its pages need some for everything else."""
_HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"x-accel-buffering", b"no")]


class Streams:
    """The open streams, counted by browser."""

    def __init__(self) -> None:
        self.open: Counter[str] = Counter()

    def stream(self, pump: Pump[Cursor], cursor: Cursor, browser: str) -> Stream:
        return Stream(self, pump, cursor, browser[:64])


class Stream:
    """One answer. If the browser has many streams already, this one ends after its first events, and the browser
    repeats the request a second later."""

    def __init__(self, streams: Streams, pump: Pump[Any], cursor: Any, browser: str) -> None:
        self._streams, self._pump, self._cursor, self._browser = streams, pump, cursor, browser

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        closed = asyncio.create_task(_closed(receive))
        counts = self._streams.open
        short = counts[self._browser] >= MOST_STREAMS
        counts[self._browser] += not short
        events = self._pump.events(self._cursor, lambda: not closed.done())
        try:
            await send(_body(b"retry: 1000\n\n"))
            async for text in events:
                await send(_body(text))
                if short:
                    break
            if not closed.done():
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            closed.cancel()
            await events.aclose()  # type: ignore[attr-defined]  # it is a generator
            counts[self._browser] -= not short
            counts += Counter()  # without the zeros


def _body(text: bytes) -> dict[str, Any]:
    return {"type": "http.response.body", "body": text, "more_body": True}


async def _closed(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass

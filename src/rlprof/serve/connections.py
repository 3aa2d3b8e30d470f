"""Limits on connections, so that a program that opens many of them, and sends nothing, cannot stop the server."""

from __future__ import annotations

import asyncio
import errno
import sys
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 20.0
"""Time to send the head of a request."""
MOST = 512
"""Open connections."""
BACKLOG = 32
"""Connections that are accepted before those beyond the limit are closed."""
_RESERVED = 64
"""File descriptors that are left for sessions and everything else."""
_LEAST = 8


class Connection(H11Protocol):
    """A connection that is closed if no request comes, or if there are too many connections."""

    most = MOST
    head_seconds = HEAD_SECONDS
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.most:
            transport.abort()
            return
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        # Idle means that a head is missing. The server itself closes a connection that is quiet after an answer, but
        # not one that has sent a part of its next request.
        if self.conn.their_state is not h11.IDLE:
            self._forget_timer()
        elif self._timer is None:
            self._expect_head()

    def _expect_head(self) -> None:
        self._timer = self.loop.call_later(self.head_seconds, self.transport.abort)

    def _forget_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def limited() -> type[Connection]:
    """The class of connections, with the limit of this machine."""
    return type("LimitedConnection", (Connection,), {"most": most_connections()})


def most_connections() -> int:
    """The limit on this machine, where file descriptors may be few."""
    try:
        import resource  # noqa: PLC0415 - not on Windows
    except ImportError:
        return MOST
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if files == resource.RLIM_INFINITY:
        return MOST
    return max(_LEAST, min(MOST, files - _RESERVED - BACKLOG))


class Complaints:
    """Handles errors of the event loop. asyncio would write a traceback for each connection that it cannot accept."""

    def __init__(self) -> None:
        self._is_full_known = False

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not isinstance(error, OSError) or error.errno not in _FULL:
            loop.default_exception_handler(context)
        elif not self._is_full_known:
            self._is_full_known = True
            sys.stderr.write("rlprof: There are too many open files, so new connections have to wait.\n")


_FULL = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

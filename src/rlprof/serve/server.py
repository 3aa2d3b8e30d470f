"""The server: its socket, the address that it prints, and an end without a traceback."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import uvicorn

from rlprof.errors import RlprofError
from rlprof.live.priority import give_way
from rlprof.serve.application import Application
from rlprof.serve.connections import BACKLOG, Complaints, limited
from rlprof.serve.guard import MOST_HEAD, Guard, host_names, is_loopback
from rlprof.session.folder import DATABASE

HOST, PORT = "127.0.0.1", 8765
_MORE_PORTS = 20


class Served:
    """A folder of sessions, ready to be served.

    given: the folder, or one of its sessions, whose page is opened first.
    port: None takes PORT, or the next one that is free.
    """

    def __init__(self, given: Path, host: str = HOST, port: int | None = None, with_token: bool = True) -> None:
        if not with_token and not is_loopback(host):
            raise RlprofError(
                f"Without the token, everybody who reaches {host} could read the runs. Leave out --no-token or --host."
            )
        if not given.is_dir():
            raise RlprofError(f"There is no folder {given}. Record a run with `rlprof run`, or give another folder.")
        single = (given / DATABASE).exists()
        self.folder = given.resolve().parent if single else given.resolve()
        self._first = f"/run/{quote(given.resolve().name, safe='')}" if single else "/"
        self.socket = _listening(host, port)
        self.host, self.port = host, int(self.socket.getsockname()[1])
        self.application = Application(self.folder)
        self.guard = Guard(self.application.asgi, host_names(host), self.port, with_token)
        config = uvicorn.Config(
            self.guard, log_level="critical", access_log=False, server_header=False, lifespan="off", ws="none",
            http=limited(), backlog=BACKLOG, loop="asyncio", proxy_headers=False, timeout_graceful_shutdown=2,
            h11_max_incomplete_event_size=MOST_HEAD,
        )  # fmt: skip
        self.server = _Server(config, self.application)

    @property
    def address(self) -> str:
        """What to open in a browser, with the token."""
        everywhere = self.host in ("0.0.0.0", "::")
        host = socket.gethostname() if everywhere else self.host
        host = f"[{host}]" if ":" in host else host
        token = f"?token={self.guard.token}" if self.guard.token else ""
        return f"http://{host}:{self.port}{self._first}{token}"

    def run(self, ready: Callable[[], Any] = lambda: None) -> None:
        """Serve until Ctrl-C. `ready` is called once requests are answered."""
        give_way()
        self.server.ready = ready
        with suppress(KeyboardInterrupt), self.socket:
            self.server.run(sockets=[self.socket])


class _Server(uvicorn.Server):
    """Ends the streams first, because they would not end by themselves."""

    def __init__(self, config: uvicorn.Config, application: Application) -> None:
        super().__init__(config)
        self.ready: Callable[[], Any] = lambda: None
        self.application = application

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().set_exception_handler(Complaints())
        await super().startup(sockets)
        self.ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self.application.close()
        await super().shutdown(sockets)


def _listening(host: str, port: int | None) -> socket.socket:
    """A socket on the port, or on the next free one if none was requested."""
    choices = [port] if port is not None else [*range(PORT, PORT + _MORE_PORTS), 0]
    for place, choice in enumerate(choices):
        try:
            return _bound(host, choice)
        except OSError as error:
            if place == len(choices) - 1 or isinstance(error, socket.gaierror):
                raise RlprofError(
                    f"Port {choice} of {host} cannot be used: {error.strerror or error}. Choose others with --port and"
                    " --host."
                ) from error
    raise AssertionError("there is at least one choice")


def _bound(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    made = socket.socket(family, kind, protocol)
    try:
        # Connections of a server that has just ended do not block the port. Another server does.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(BACKLOG)
    except BaseException:
        made.close()
        raise
    return made

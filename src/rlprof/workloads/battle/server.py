"""A game server for one training. It listens on this machine only and ends with the training, however that ends."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from rlprof.errors import RlprofError
from rlprof.workloads.battle.install import READY, STARTED_BY, check_installed, find, folder_of, package_of
from rlprof.workloads.battle.settings import BattleSettings

START_SECONDS = 60
STOP_SECONDS = 5

_ADDRESS = re.compile(r"(?:ws://)?(?P<host>[\w.-]+|\[[0-9a-fA-F:]+\]):(?P<port>\d{1,5})(?P<path>/\S*)?")


@contextmanager
def serving(settings: BattleSettings) -> Iterator[str]:
    """Address of the server to play on: the configured one, or one that is started and stopped here."""
    if settings.server:
        yield address_of(settings.server)
        return
    server = Server(folder_of(settings))
    try:
        server.wait_until_ready()
        yield server.address
    finally:
        server.stop()


def address_of(named: str) -> str:
    """The full address for `host:port` or a full address."""
    found = _ADDRESS.fullmatch(named)
    if found is None:
        raise RlprofError(f"{named!r} is not a server address; write host:port or ws://host:port/showdown/websocket")
    return f"ws://{found['host']}:{found['port']}{found['path'] or '/showdown/websocket'}"


class Server:
    """The server, in a process group of its own so that Ctrl-C reaches only the training. It reads from a pipe whose
    other end is here, and exits when this process is gone."""

    def __init__(self, folder: Path) -> None:
        check_installed(folder)
        package = package_of(folder)
        self._port = _free_port()
        self._log = package / "logs" / f"rlprof-{self._port}.log"
        self.address = address_of(f"127.0.0.1:{self._port}")
        command = [find("node"), "pokemon-showdown", "start", "--no-security", "--skip-build", str(self._port)]
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                command,
                cwd=package,
                env={**os.environ, STARTED_BY: str(os.getpid())},
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait_until_ready(self) -> None:
        click.echo(f"battle: starting the game server at 127.0.0.1:{self._port}", err=True)
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RlprofError(f"the game server exited while it started; its output is in {self._log}")
            if READY in self._log.read_text(encoding="utf-8", errors="replace"):
                return
            time.sleep(0.05)
        raise RlprofError(f"the game server was not ready within {START_SECONDS} s; its output is in {self._log}")

    def stop(self) -> None:
        """Stop the server. A second call does nothing."""
        with contextlib.suppress(OSError):
            self.process.stdin.close()  # type: ignore[union-attr]  # it is a pipe
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        if self.process.returncode == 0:
            self._log.unlink(missing_ok=True)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])

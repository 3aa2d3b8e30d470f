"""A server for tests, a client that may send anything, and sessions to look at."""

from __future__ import annotations

import http.client
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlprof import Profiler, record
from rlprof.serve.server import Served

NASTY = (
    "<script>window.hacked = 1</script>",
    "</script><img src=x onerror='window.hacked = 1'>",
    "<b>bold</b>",
    "{{data}}",
    "\u2028line\u2029",
    "\x1b[2J",
    "two\nlines",
    "x" * 500,
)


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


class Client:
    """Sends one request per connection, with exactly these headers."""

    def __init__(self, served: Served) -> None:
        self.port, self.token, self.action = served.port, served.guard.token, served.application.action
        self.own = f"127.0.0.1:{self.port}"
        self.cookie = ""

    def log_in(self) -> Client:
        answer = self.send("GET", f"/?token={self.token}")
        assert answer.status == 303
        self.cookie = answer.headers["set-cookie"].partition(";")[0]
        return self

    def send(self, method: str, path: str, body: bytes | None = None, host: str | None = "", **headers: str) -> Answer:
        connection = self.request(method, path, body, host, **headers)
        try:
            found = connection.getresponse()
            content = found.read()
        finally:
            connection.close()
        return Answer(found.status, {name.lower(): value for name, value in found.getheaders()}, content)

    def request(
        self, method: str, path: str, body: bytes | None = None, host: str | None = "", **headers: str
    ) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        if host is not None:
            connection.putheader("Host", host or self.own)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookie and "Cookie" not in given:
            given["Cookie"] = self.cookie
        if body is not None and "Content-Length" not in given:
            given["Content-Length"] = str(len(body))
        for name, value in given.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        return connection

    def get(self, path: str, **headers: str) -> Answer:
        return self.send("GET", path, **headers)

    def post(self, path: str, **headers: str) -> Answer:
        usual = {"Origin": f"http://{self.own}", "X_Rlprof_Action": self.action}
        return self.send("POST", path, b"", **{**usual, **headers})

    def events(self, path: str, most: int = 1_000) -> Iterator[tuple[str, Any]]:
        """The events of a stream, until it ends."""
        connection = self.request("GET", path)
        try:
            found = connection.getresponse()
            assert found.status == 200, found.read()
            name = ""
            for _ in range(most):
                line = found.readline().decode()
                if not line:
                    return
                if line.startswith("event: "):
                    name = line.removeprefix("event: ").strip()
                elif line.startswith("data: "):
                    yield name, json.loads(line.removeprefix("data: "))
        finally:
            connection.close()


@contextmanager
def serving(folder: Path, **settings: Any) -> Iterator[Served]:
    """A server on a free port of the loopback, in a thread."""
    served = Served(folder, **{"port": 0, **settings})
    ready = threading.Event()
    thread = threading.Thread(target=served.run, args=(ready.set,))
    thread.start()
    try:
        assert ready.wait(30)
        yield served
    finally:
        served.server.should_exit = True
        thread.join(30)
        assert not thread.is_alive()


def work(profiler: Profiler, iterations: int = 4) -> None:
    for _ in range(iterations):
        with profiler.iteration():
            with profiler.profile("rollout"):
                for _ in range(3):
                    with profiler.profile("env_step"):
                        time.sleep(0.0005)
                    profiler.add_steps(8)
            with profiler.profile("update"), profiler.profile("backward"):
                time.sleep(0.002)


def recorded(folder: Path, name: str, work: Callable[[Profiler], None] = work, **settings: Any) -> Path:
    """The folder of a session that has ended."""
    profiler = Profiler()
    with record(name, dir=folder, profiler=profiler, settings=settings, stacks=False) as recording:
        work(profiler)
    assert recording.folder is not None
    return recording.folder


def data_in(page: str, id: str) -> Any:
    """The JSON that a page holds under a name."""
    found = re.search(rf'<script type="application/json" id="{id}">(.*?)</script>', page, re.DOTALL)
    assert found is not None, page[:500]
    return json.loads(found[1])


def until(condition: Callable[[], Any], seconds: float = 60) -> Any:
    """Poll until something is true. Returns it."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it did not become true in time"
        time.sleep(0.05)
    return found

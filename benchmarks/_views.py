"""The views of a running training as processes: `rlprof top` in a pseudo-terminal, `rlprof serve` with open pages."""

from __future__ import annotations

import fcntl
import http.client
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from rlprof.live.feed import Feed
from rlprof.top.look import Look
from rlprof.top.screen import Size, screen
from rlprof.top.view import View

RLPROF = (sys.executable, "-m", "rlprof")


class _Viewer:
    """A process that can be stopped and resumed."""

    process: subprocess.Popen[bytes]

    def pause(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.resume()
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Top(_Viewer):
    """`rlprof top` in a terminal of 100 x 30."""

    def __init__(self, session: Path) -> None:
        self._master, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self._began = time.monotonic()
        self.process = subprocess.Popen(
            [*RLPROF, "top", str(session)],
            stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True,
            env={**os.environ, "TERM": "xterm-256color"},
        )  # fmt: skip
        os.close(terminal)
        self._seen = bytearray()
        self._changed = threading.Condition()
        threading.Thread(target=self._drain, daemon=True).start()

    def wait_for_figures(self, text: bytes) -> float:
        """Seconds from the start of the process until a figure was drawn before this text."""
        pattern = re.compile(rb"\d[\d,.]*(?:\x1b\[[\d;]*m|\s)*" + re.escape(text))
        with self._changed:
            if not self._changed.wait_for(lambda: pattern.search(self._seen), timeout=30):
                raise RuntimeError(f"top has drawn no figure: {bytes(self._seen[-500:])!r}")
        return self._drawn - self._began

    def _drain(self) -> None:
        while True:
            try:
                found = os.read(self._master, 1 << 16)
            except OSError:
                return
            with self._changed:
                self._drawn = time.monotonic()
                if len(self._seen) < 1 << 20:
                    self._seen += found
                    self._changed.notify_all()


class Page:
    """An open page: it reads the events of one session and throws them away."""

    def __init__(self, port: int, cookie: str, session: str, browser: int) -> None:
        self.events = 0
        self._connection = http.client.HTTPConnection("127.0.0.1", port)
        self._connection.request("GET", f"/run/{session}/events?browser={browser}", headers={"Cookie": cookie})
        self._answer = self._connection.getresponse()
        if self._answer.status != 200:
            raise RuntimeError(f"the server answered {self._answer.status}: {self._answer.read(300)!r}")
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        try:
            while line := self._answer.readline():
                self.events += line.startswith(b"event:")
        except (OSError, AttributeError, ValueError):
            return  # closed


class Served(_Viewer):
    """`rlprof serve` for a folder, with pages that are open."""

    def __init__(self, folder: Path, pages: Sequence[str]) -> None:
        self.process = subprocess.Popen(
            [*RLPROF, "serve", str(folder), "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        assert self.process.stdout is not None
        found = None
        while found is None:
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError("rlprof serve has ended")
            found = re.search(rb"http://127\.0\.0\.1:(\d+)(/\S*)", line)
        port, path = int(found[1]), found[2].decode()
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", path)
        cookie = (connection.getresponse().getheader("Set-Cookie") or "").partition(";")[0]
        # A browser has six connections to a server, of which four may be streams.
        self.pages = [Page(port, cookie, session, number // 4) for number, session in enumerate(pages)]


def giant_frames(session: Path, times: int) -> list[float]:
    """Milliseconds per refresh of the dashboard: reading a frame and drawing the screen. The session is read as a
    whole first, as it is when the dashboard has been open for some seconds."""
    feed = Feed(session)
    feed.refresh(force=True)
    look, view, size = Look(), View(), Size(100, 30)
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        drawn = screen(feed.frame(), view, size, look)
        taken.append(1e3 * (time.perf_counter() - began))
        assert len(drawn.lines) == size.height
    return taken

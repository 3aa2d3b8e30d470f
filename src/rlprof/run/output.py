"""The output of a program in a pseudo-terminal: complete in a file, and the newest part of it in memory."""

from __future__ import annotations

import os
import select
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from rlprof.run import OUTPUT
from rlprof.run.pseudo_terminal import PseudoTerminal
from rlprof.session.folder import make_private

KEPT = 1 << 16
"""Newest bytes in memory."""
BLOCK = 1 << 16
POLL_SECONDS = 0.2


class Output:
    """Reads on a thread of its own, so that the program never waits for whoever shows its output."""

    def __init__(self, terminal: PseudoTerminal, path: Path, at_end: Callable[[int], None] = lambda _: None) -> None:
        self.path = path
        self.total = 0
        """Bytes read so far."""
        self.problem = ""
        """Why the file is incomplete."""
        self._terminal = terminal
        self._at_end = at_end
        self._lock = threading.Lock()
        self._newest = bytearray()
        self._taken = 0
        self._ended = False
        make_private(path)
        self._file = path.open("ab", buffering=0)
        self._thread = threading.Thread(target=self._run, name="rlprof output", daemon=True)

    def start(self) -> None:
        """Begin to read. A second call does nothing."""
        if not self._thread.is_alive() and not self._ended:
            self._thread.start()

    def join(self) -> None:
        """Wait until everything is read and the program has ended."""
        self._thread.join()

    def take(self, most: int) -> tuple[bytes, bool]:
        """What was not taken yet, and True if older parts of it were skipped. It then begins with a line, if it has
        any."""
        with self._lock:
            new = min(self.total - self._taken, len(self._newest))
            skipped = new < self.total - self._taken or new > most
            taken = bytes(self._newest[len(self._newest) - min(new, most) :]) if new else b""
            self._taken = self.total
        if skipped:
            for end in (b"\n", b"\r"):
                if end in taken[:-1]:
                    return taken[taken.index(end) + 1 :], True
        return taken, skipped

    def move(self, folder: Path) -> None:
        """Continue the file in the session's folder. If that fails, it stays where it is."""
        target = folder / OUTPUT
        with self._lock, suppress(OSError):
            make_private(target)
            shutil.copyfile(self.path, target)
            file = target.open("ab", buffering=0)
            self._file.close()  # harmless if it is closed already
            self._file = file
            self.path.unlink()
            self.path = target

    def close(self) -> None:
        with self._lock:
            self._file.close()

    def _run(self) -> None:
        process = self._terminal.process
        while True:
            ended = process.poll() is not None  # looked at first: what it wrote before its end can then be read
            try:
                ready = select.select([self._terminal.fd], [], [], POLL_SECONDS)[0]
                part = os.read(self._terminal.fd, BLOCK) if ready else b""
            except OSError:  # no process has the terminal open any more
                part = b""
                if not ended:
                    time.sleep(POLL_SECONDS)
            if part:
                self._keep(part)
            elif ended:
                break
        self._ended = True
        self._at_end(process.returncode)

    def _keep(self, part: bytes) -> None:
        with self._lock:
            self.total += len(part)
            self._newest += part
            if len(self._newest) > 2 * KEPT:
                del self._newest[:-KEPT]
            try:
                view = memoryview(part)
                while view:
                    view = view[self._file.write(view) :]
                self.problem = ""
            except OSError as error:
                self.problem = f"{self.path.name} is incomplete: {error.strerror or error}"

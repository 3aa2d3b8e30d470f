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
LEFT_SECONDS = 2.0
"""How long the output of processes is read that the program has left behind."""


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
        """As few system calls per part as possible: a terminal hands out 4 KB at a time."""
        fd, process = self._terminal.fd, self._terminal.process
        readable = select.poll()
        readable.register(fd, select.POLLIN)
        looked, ended = 0.0, False
        while True:
            try:
                part = os.read(fd, BLOCK) if readable.poll(POLL_SECONDS * 1e3) else b""
            except OSError:  # no process has the terminal open any more
                part = b""
                if not ended:
                    time.sleep(POLL_SECONDS)
            if part:
                self._keep(part)
            elif ended:
                break
            now = time.monotonic()
            if not ended and (not part or now - looked > POLL_SECONDS):
                looked, ended = now, process.poll() is not None  # what it wrote before its end is read after this
            elif ended and part and now - looked > LEFT_SECONDS:
                break  # processes that it has left behind go on writing
        self._ended = True
        self._at_end(process.returncode)

    def _keep(self, part: bytes) -> None:
        with self._lock:
            self.total += len(part)
            self._newest += part
            if len(self._newest) > 2 * KEPT:
                del self._newest[:-KEPT]
            try:
                written = self._file.write(part)
                while written < len(part):  # a disk that is nearly full
                    written += self._file.write(part[written:])
                self.problem = ""
            except OSError as error:
                self.problem = f"{self.path.name} is incomplete: {error.strerror or error}"

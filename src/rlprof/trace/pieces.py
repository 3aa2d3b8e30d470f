"""The bytes of a file in pieces, unpacked if the file is gzipped."""

from __future__ import annotations

import zlib
from collections.abc import Generator, Iterator
from pathlib import Path
from queue import Queue
from threading import Event, Thread
from typing import BinaryIO

from rlprof.errors import UnreadableError
from rlprof.trace.limits import NO_LIMITS, Limits

PIECE = 1 << 20
_GZIP = b"\x1f\x8b"


class Pieces:
    """Iterate over it once. `read` is the position in the file, `size` the size of the file, and `cut` the reason if
    the data ended too early."""

    def __init__(self, path: Path, limits: Limits = NO_LIMITS) -> None:
        try:
            self._file: BinaryIO = path.open("rb")
            self.size = path.stat().st_size
        except OSError as error:
            raise UnreadableError(f"{path} cannot be read: {error.strerror or error}") from error
        self.path = path
        self._limits = limits
        self.read = 0
        self.unpacked = 0
        self.cut = ""

    def __iter__(self) -> Generator[bytes, None, None]:
        with self._file:
            first = self._file.read(len(_GZIP))
            self._file.seek(0)
            self._limits.check_text(self.path, self.size, self.size)
            pieces = _ahead(self._unzip()) if first == _GZIP else self._plain()
            for piece in pieces:
                self.unpacked += len(piece)
                self._limits.check_text(self.path, self.read, self.unpacked)
                yield piece

    def _plain(self) -> Iterator[bytes]:
        try:
            while piece := self._file.read(PIECE):
                self.read += len(piece)
                yield piece
        except OSError as error:
            raise UnreadableError(f"{self.path} cannot be read: {error.strerror or error}") from error

    def _unzip(self) -> Iterator[bytes]:
        """A gzip file may have several members, one after the other."""
        unzip = zlib.decompressobj(wbits=31)
        try:
            for packed in self._plain():
                left = packed
                while left:
                    if unzip.eof:
                        unzip = zlib.decompressobj(wbits=31)
                    yield unzip.decompress(left, PIECE)
                    left = unzip.unconsumed_tail or unzip.unused_data
        except zlib.error as error:
            self.cut = f"its compression is broken ({error})"
            return
        if not unzip.eof:
            self.cut = "its compressed data ends too early"


def _ahead(pieces: Iterator[bytes], count: int = 4) -> Iterator[bytes]:
    """The same pieces, made ahead by another thread: unpacking takes about as long as scanning the result."""
    queue: Queue[bytes | BaseException | None] = Queue(count)
    stopped = Event()

    def make() -> None:
        try:
            for piece in pieces:
                queue.put(piece)
                if stopped.is_set():
                    return
            queue.put(None)
        except BaseException as error:  # raised again where the next piece is taken
            queue.put(error)

    thread = Thread(target=make, name="rlprof-unzip", daemon=True)
    thread.start()
    try:
        while (piece := queue.get()) is not None:
            if isinstance(piece, BaseException):
                raise piece
            yield piece
    finally:
        stopped.set()
        while thread.is_alive():  # it may be waiting for room in the queue
            while not queue.empty():
                queue.get_nowait()
            thread.join(0.01)

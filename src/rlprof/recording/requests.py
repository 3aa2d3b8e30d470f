"""What a recorded training does about requests. Runs on its flushing thread, and warns instead of raising."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from rlprof.recording.stack_dump import StackAnswers
from rlprof.session.folder import PRIVATE_FOLDER
from rlprof.session.process import identity_of
from rlprof.session.recorded_process import DUMP_SUFFIX, FOLDER, SUFFIX
from rlprof.session.requests import CaptureRequest, MarkRequest, StacksRequest, pending, read_request, withdraw

EXPIRES_SECONDS = 60.0
"""After so long a request for stacks is removed, because its requester was killed."""

MOST_ENTRIES = 256
"""Files in `stacks` from which those of ended processes are removed. Pools may start processes without end."""

Mark = Callable[[str, str], None]
Warn = Callable[[str, BaseException | None], None]


class Requests:
    """The requests to one recording."""

    def __init__(self, folder: Path, mark: Mark, warn: Warn) -> None:
        self._folder = folder
        self._mark = mark
        self._warn = warn
        self._stacks = StackAnswers(folder)
        self._seen: dict[str, float] = {}
        """By name of a request for stacks: when it was first seen."""
        self._unremovable: set[str] = set()
        """Requests that cannot be removed. They are not read again."""
        self._entries_checked = time.monotonic()
        with suppress(OSError):
            (folder / FOLDER).mkdir(PRIVATE_FOLDER, exist_ok=True)

    def begin(self) -> None:
        """Called first, on the thread that answers."""
        self._stacks.begin()

    def handle(self, capture: Callable[[Path], None] | None) -> None:
        """Do what is requested. `capture` is called with the file of a requested capture, and removes it."""
        waiting = [path for path in pending(self._folder) if path.name not in self._unremovable]
        for path in waiting:
            try:
                self._do(path, capture)
            except Exception as error:
                self._warn("a request to the running training failed", error)
                self._remove(path)
        self._stacks.answer()
        self._seen = {path.name: self._seen[path.name] for path in waiting if path.name in self._seen}
        if time.monotonic() - self._entries_checked > EXPIRES_SECONDS:
            self._entries_checked = time.monotonic()
            if len(self._entries()) >= MOST_ENTRIES:
                self._remove_entries(lambda pid: identity_of(pid) is None)

    def end(self) -> None:
        """Write the marks that were requested last, remove all requests, and undo `begin`."""
        for path in pending(self._folder):
            with suppress(Exception):
                request = read_request(path)
                if isinstance(request, MarkRequest):
                    self._mark(request.kind, request.text)
            withdraw(path)
        self._stacks.end()
        self._remove_entries(lambda _: True)
        with suppress(OSError):
            (self._folder / FOLDER).rmdir()

    def _do(self, path: Path, capture: Callable[[Path], None] | None) -> None:
        try:
            request = read_request(path)
        except FileNotFoundError:
            return  # it was withdrawn
        if isinstance(request, StacksRequest):
            if time.monotonic() - self._seen.setdefault(path.name, time.monotonic()) > EXPIRES_SECONDS:
                self._remove(path)
        elif isinstance(request, CaptureRequest) and capture is not None:
            capture(path)
        else:
            self._remove(path)
            if isinstance(request, MarkRequest) and path.name not in self._unremovable:
                self._mark(request.kind, request.text)

    def _remove(self, path: Path) -> None:
        withdraw(path)
        if path.exists():  # on a disk that has become read-only, for example
            self._unremovable.add(path.name)

    def _entries(self) -> list[Path]:
        return [path for path in (self._folder / FOLDER).glob(f"*{SUFFIX}") if path.stem.isdecimal()]

    def _remove_entries(self, is_over: Callable[[int], bool]) -> None:
        """Remove what processes have left. Stacks that were written by the signal are kept."""
        with suppress(OSError):
            for entry in self._entries():
                if is_over(int(entry.stem)):
                    entry.unlink(missing_ok=True)
                    dump = entry.with_suffix(DUMP_SUFFIX)
                    if dump.exists() and dump.stat().st_size == 0:
                        dump.unlink()

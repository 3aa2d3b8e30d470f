"""Answers requests for the Python stacks of this process, on rlprof's own thread."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import msgspec

from rlprof.recording.stack_signal import StackSignal
from rlprof.session.folder import write_private
from rlprof.session.process import identity_of
from rlprof.session.recorded_process import (
    FOLDER,
    Answer,
    AnsweredThread,
    RecordedProcess,
    dump_file,
    entry_file,
    is_own_thread,
)
from rlprof.session.requests import SUFFIX, answers_of, pending

if TYPE_CHECKING:
    from rlprof.recording.sources import Sources

MOST_FRAMES = 100
"""Innermost frames of a thread that are shown. faulthandler has the same limit."""
MOST_COUNTED = 10_000
MOST_THREADS = 500


class StackAnswers:
    """This process, as one whose stacks can be requested. All methods are for rlprof's own thread, except `end`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._name = ""
        self._pid = os.getpid()
        self._signal = StackSignal()
        self._answered: set[str] = set()

    def begin(self, name: str = "") -> None:
        """Announce this process in the session's folder. Without that it still answers requests, but is sent no
        signal. `name` is that of a worker process."""
        self._name = _valid_utf8(name)
        with suppress(Exception):
            if not (self._folder / FOLDER).is_dir():
                return  # the run is at its end
            installed = self._signal.install(dump_file(self._folder, self._pid))
            number, file = installed or (0, -1)
            entry = RecordedProcess(
                pid=self._pid,
                identity=identity_of(self._pid) or "",
                name=self._name,
                main=threading.main_thread().ident or 0,
                thread=threading.get_native_id(),
                signal=number,
                file=file,
            )
            write_private(entry_file(self._folder, self._pid), msgspec.json.encode(entry))

    def answer(self) -> None:
        """Answer all requests for stacks that are not answered yet."""
        waiting = [path for path in pending(self._folder) if answers_of(path).is_dir()]
        for path in waiting:
            if path.name not in self._answered:
                with suppress(Exception):  # such as a request that is withdrawn at this moment
                    answer = Answer(self._pid, self._name, current_threads())
                    write_private(answers_of(path) / f"{self._pid}{SUFFIX}", msgspec.json.encode(answer))
        self._answered = {path.name for path in waiting}

    def end(self) -> None:
        """Undo `begin`. Stacks that were written by the signal are kept."""
        if self._pid != os.getpid():
            return
        self._signal.remove()
        dump = dump_file(self._folder, self._pid)
        with suppress(OSError):
            entry_file(self._folder, self._pid).unlink()
        with suppress(OSError):
            if dump.stat().st_size == 0:
                dump.unlink()


def current_threads() -> list[AnsweredThread]:
    """The stacks of all threads but rlprof's own, the main thread first."""
    from rlprof.recording.sources import Sources  # noqa: PLC0415 - worker processes hardly ever need it

    main = threading.main_thread().ident
    known = dict(threading._active)  # type: ignore[attr-defined]  # the public way makes dummies for foreign threads
    sources = Sources("")
    found = []
    for ident, frame in list(sys._current_frames().items())[:MOST_THREADS]:
        frames, hidden = _frames(frame, sources)
        if not frames or is_own_thread(frames[0][0]):
            continue
        name = known[ident].name if ident in known else f"thread {ident}"
        found.append(AnsweredThread(_valid_utf8(str(name)), ident == main, frames, hidden))
    return sorted(found, key=lambda thread: (not thread.is_main, thread.name))


def _frames(innermost: FrameType, sources: Sources) -> tuple[list[tuple[str, int, str, str]], int]:
    """The frames of a thread, outermost first, and the number of outer ones that are left out."""
    found: list[tuple[str, int, str, str]] = []
    hidden = 0
    frame: FrameType | None = innermost
    while frame is not None and hidden < MOST_COUNTED:
        if len(found) < MOST_FRAMES:
            code, line = frame.f_code, frame.f_lineno or 0
            # Whoever requests the stacks reads no files: others might have named them.
            source = sources.statement(code.co_filename, line)[0]
            file, function = _valid_utf8(code.co_filename), _valid_utf8(code.co_qualname)
            found.append((file, line, function, _valid_utf8(source)))
        else:
            hidden += 1
        frame = frame.f_back
    return found[::-1], hidden


def _valid_utf8(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()

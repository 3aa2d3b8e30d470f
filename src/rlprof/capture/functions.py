"""Which Python functions take the time, of the whole run or only inside some phases: cProfile, or samples."""

from __future__ import annotations

import cProfile
import io
import pstats
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import get_ident
from typing import Any, Protocol

from rlprof.capture.spans import watch_spans
from rlprof.errors import MissingLibraryError
from rlprof.ledger.profiler import Profiler

WHOLE = "whole"
"""Of the files, where no phase is named."""
TOP = 50


class Recorder(Protocol):
    """Of one thread, that can go on after it has stopped."""

    def resume(self) -> None: ...
    def pause(self) -> None: ...
    def write(self, stem: Path) -> list[Path]:
        """Its files; nothing where nothing was recorded."""


class Calls:
    """cProfile: every call is counted and timed, and costs about a microsecond more."""

    def __init__(self) -> None:
        self._profile = cProfile.Profile()

    def resume(self) -> None:
        self._profile.enable()

    def pause(self) -> None:
        self._profile.disable()

    def write(self, stem: Path) -> list[Path]:
        text = io.StringIO()
        try:
            stats = pstats.Stats(self._profile, stream=text)
        except TypeError:  # nothing was called
            return []
        stats.sort_stats("cumulative").print_stats(TOP)
        data, table = _beside(stem, ".pstats"), _beside(stem, ".txt")
        stats.dump_stats(data)
        table.write_text(text.getvalue(), encoding="utf-8")
        return [data, table]


class Samples:
    """pyinstrument: looks at the stack once a millisecond."""

    def __init__(self) -> None:
        try:
            from pyinstrument import Profiler as Pyinstrument  # noqa: PLC0415 - an extra of its own
        except ImportError as error:
            raise MissingLibraryError("--sample", "pyinstrument", "sample") from error
        self._profile: Any = Pyinstrument(interval=0.001, async_mode="disabled")

    def resume(self) -> None:
        self._profile.start()

    def pause(self) -> None:
        if self._profile.is_running:
            self._profile.stop()

    def write(self, stem: Path) -> list[Path]:
        if self._profile.last_session is None:
            return []
        page, table = _beside(stem, ".sampled.html"), _beside(stem, ".sampled.txt")
        table.write_text(self._profile.output_text(unicode=True, show_all=False), encoding="utf-8")
        page.write_text(self._profile.output_html(), encoding="utf-8")
        return [table, page]


def _beside(stem: Path, ending: str) -> Path:
    """An operation's name may have anything in it."""
    return stem.parent / (re.sub(r"[^\w.+-]+", "-", stem.name) + ending)


class FunctionCapture:
    """Records the thread that starts it. With phases named, each has a record of its own, of what happens inside."""

    def __init__(self, profiler: Profiler, make: Callable[[], Recorder], phases: Sequence[str] = ()) -> None:
        self._profiler = profiler
        self._phases = tuple(dict.fromkeys(phases))
        self._recorders = {name: make() for name in self._phases or (WHOLE,)}
        self._thread = 0
        self._inside: list[str] = []
        self._unwatch: Callable[[], None] | None = None

    def start(self) -> None:
        self._thread = get_ident()
        if self._phases:
            self._unwatch = watch_spans(self._profiler, self._watch)
        else:
            self._recorders[WHOLE].resume()

    def _watch(self, name: str, begins: bool) -> None:
        """Inside one phase another is that one's alone: only one record is made at a time."""
        if name not in self._recorders or get_ident() != self._thread:
            return
        if self._inside:
            self._recorders[self._inside[-1]].pause()
        if begins:
            self._inside.append(name)
        elif name in self._inside:
            self._inside.remove(name)
        if self._inside:
            self._recorders[self._inside[-1]].resume()

    def stop(self, folder: Path) -> list[Path]:
        """Write what there is; the files."""
        if not self._thread:
            return []
        if self._unwatch is not None:
            self._unwatch()
        if get_ident() == self._thread:
            for recorder in self._recorders.values():
                recorder.pause()
        self._thread = 0
        folder.mkdir(parents=True, exist_ok=True)
        return [
            path
            for name, recorder in self._recorders.items()
            for path in recorder.write(folder / name.replace("/", "-"))
        ]

"""The runs of a folder, for the home page. A session is read again only if its files have changed."""

from __future__ import annotations

import os
import platform
import stat
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from rlprof.analysis.breakdown import breakdown
from rlprof.analysis.facts import KILLED, RUNNING, UNENDED, UNKNOWN, ended
from rlprof.analysis.progress import progress
from rlprof.analysis.training import training_of
from rlprof.errors import RlprofError, UnreadableError
from rlprof.list.sessions import UNREADABLE, program_of
from rlprof.list.text import short_state
from rlprof.render.html.markup import plain_name, prose
from rlprof.report.tree import OWN_CODE
from rlprof.session.folder import DATABASE, sessions_in
from rlprof.session.info import Info
from rlprof.session.process import runs
from rlprof.session.reader import Session

_MOST_SETTINGS = 100
_LEAST_NEW = 8
"""Sessions that are read for the first time in any case, however long the others take. So all are read in the end."""
_PAUSE = 20.0
"""Times the time that reading a running session took, before it is read again. So it costs at most 5 % of a core."""

_Stamp = tuple[tuple[int, int, int] | None, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """One row of the home page, ready to be shown. What is unknown is None."""

    folder: str
    state: str
    name: str | None = None
    running: bool = False
    started: float | None = None
    """Unix time in seconds."""
    wall_ns: int | None = None
    steps_per_second: float | None = None
    largest: str | None = None
    """The largest operation, and its share of the training time in percent."""
    largest_share: float | None = None
    program: str | None = None
    settings: dict[str, str] = field(default_factory=dict)
    problem: str | None = None


@dataclass(slots=True)
class _Known:
    stamp: _Stamp
    run: Run
    info: Info | None
    how: str
    again: float
    """Monotonic time before which it is not read again."""


class Runs:
    """The sessions of one folder. Methods may be called from any thread."""

    def __init__(self, parent: Path) -> None:
        self.parent = parent.resolve()
        self._known: dict[str, _Known] = {}
        self._lock = threading.Lock()

    def folder(self, name: str) -> Path:
        """The folder of a session. Raises UnreadableError for every name that is not a session of this folder."""
        path = self.parent / name
        if name != path.name or not _is_inside(path):
            raise UnreadableError(f"There is no run {plain_name(name)} here.")
        return path

    def scan(self, seconds: float) -> tuple[list[Run], int]:
        """The runs, newest first, and how many were not read yet: after so many seconds of reading, they wait."""
        with self._lock:
            folders = [folder for folder in sessions_in(self.parent) if _is_inside(folder)]
            deadline = time.monotonic() + seconds  # listing a large folder takes longer than that
            self._known = {folder.name: known for folder in folders if (known := self._known.get(folder.name))}
            found: list[Run] = []
            missing = made = 0
            for folder in folders:
                known = self._known.get(folder.name)
                if known is None:
                    if made >= _LEAST_NEW and time.monotonic() > deadline:
                        missing += 1
                        continue
                    made += 1
                self._known[folder.name] = known = self._updated(folder, known)
                found.append(known.run)
            return found, missing

    def _updated(self, folder: Path, known: _Known | None) -> _Known:
        stamp = _stamp(folder)
        now = time.monotonic()
        if known is not None and (known.stamp == stamp or now < known.again):
            if known.run.running and known.info is not None:
                how = _how(known.info)
                if how != known.how:
                    return replace(known, how=how, run=replace(known.run, state=how, running=how != KILLED))
            return known
        run, info, how = _read(folder)
        return _Known(stamp, run, info, how, time.monotonic() + _PAUSE * (time.monotonic() - now))


def _is_inside(folder: Path) -> bool:
    """True for a session whose folder and files are where they seem to be. A link may lead anywhere."""
    try:
        return stat.S_ISREG(os.lstat(folder / DATABASE).st_mode) and not is_replaced(folder)
    except (OSError, ValueError):  # ValueError: a name with a NUL
        return False


def is_replaced(folder: Path) -> bool:
    """True if a session's folder is no folder, or if one of its files is no plain file. What is missing is neither."""
    expected = [(folder, stat.S_ISDIR)]
    expected += [(folder / f"{DATABASE}{ending}", stat.S_ISREG) for ending in ("", "-wal", "-shm", "-journal")]
    for path, is_kind in expected:
        with suppress(FileNotFoundError):
            if not is_kind(os.lstat(path).st_mode):
                return True
    return False


def _stamp(folder: Path) -> _Stamp:
    """Changes whenever one of the files is written."""
    found: list[tuple[int, int, int] | None] = []
    for name in (DATABASE, f"{DATABASE}-wal"):
        try:
            seen = os.stat(folder / name)
        except OSError:
            found.append(None)
        else:
            found.append((seen.st_ino, seen.st_size, seen.st_mtime_ns))
    return tuple(found)


def _how(info: Info) -> str:
    if info.host != platform.node():
        return UNKNOWN
    return RUNNING if runs(info.pid, info.process, info.started) else KILLED


def _read(folder: Path) -> tuple[Run, Info | None, str]:
    try:
        with Session(folder) as session:
            info, how = session.info, ended(session)
            run = Run(
                folder=folder.name,
                state=short_state("finished" if how == "ended" else how),
                name=plain_name(info.name),
                running=how in UNENDED and how != KILLED,
                started=info.started / 1e9,
                program=prose(program_of(info.command)),
                settings=_settings(info),
            )
            return (_with_figures(run, session) if session.state is not None else run), info, how
    except (RlprofError, OSError, RecursionError) as error:
        text = str(error).replace(f"{folder / DATABASE} ", "").replace(f"{folder} ", "").partition("; give ")[0]
        return Run(folder=folder.name, state=UNREADABLE, problem=prose(f"It {text}")), None, UNREADABLE


def _with_figures(run: Run, session: Session) -> Run:
    training = training_of(session)
    made, whole = progress(training, ()), breakdown(training)
    largest = whole.largest if whole.training_ns else None
    return replace(
        run,
        wall_ns=made.wall_ns,
        steps_per_second=made.steps_per_second,
        largest=None if largest is None else OWN_CODE if largest.name == "unattributed" else plain_name(largest.name),
        largest_share=None if largest is None else largest.share,
    )


def _settings(info: Info) -> dict[str, str]:
    chosen = list(info.settings.items())[:_MOST_SETTINGS]
    return {plain_name(name): plain_name(str(value)) for name, value in chosen}

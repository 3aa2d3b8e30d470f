"""The sessions of a folder, newest first. One that cannot be read is listed with the reason."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rlprof.analysis.facts import ended
from rlprof.analysis.progress import progress
from rlprof.analysis.training import training_of
from rlprof.errors import RlprofError
from rlprof.session.folder import sessions_in
from rlprof.session.reader import Session

UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Listed:
    """One session. What is unknown is None."""

    folder: str
    state: str
    """`running`, `killed`, `finished`, what else ended it, or `unreadable`."""
    name: str | None = None
    started: int | None = None
    """Unix time in ns."""
    wall_ns: int | None = None
    """As of the last flush."""
    steps_per_second: float | None = None
    program: str | None = None
    """The command line without the interpreter. Likely secrets are masked."""
    problem: str | None = None
    """Why it cannot be read."""


@dataclass(frozen=True, slots=True)
class Listing:
    folder: str
    sessions: tuple[Listed, ...]
    older: int
    """Number of sessions that the limit leaves out."""


def list_sessions(parent: Path, limit: int) -> Listing:
    """Only the newest `limit` sessions are opened, so that a folder with very many is listed at once."""
    folders = sessions_in(parent)
    return Listing(str(parent), tuple(map(_listed, folders[:limit])), max(0, len(folders) - limit))


def _listed(folder: Path) -> Listed:
    try:
        with Session(folder) as session:
            info = session.info
            found = Listed(
                folder=folder.name,
                state=_state(session),
                name=info.name,
                started=info.started,
                program=program_of(info.command),
            )
            if session.state is None:
                return found  # nothing was flushed yet
            made = progress(training_of(session), ())
    except (RlprofError, OSError) as error:
        return Listed(folder=folder.name, state=UNREADABLE, problem=_reason(error, folder))
    return Listed(
        found.folder, found.state, found.name, found.started, made.wall_ns, made.steps_per_second, found.program
    )


def _state(session: Session) -> str:
    how = ended(session)
    return "finished" if how == "ended" else how


def _reason(error: Exception, folder: Path) -> str:
    """Without the path, which the listing shows already."""
    text = str(getattr(error, "strerror", None) or error)
    for path in (str(folder / "session.db"), str(folder)):
        text = text.removeprefix(path).lstrip(": ")
    return text.partition("; give ")[0]


def program_of(command: Sequence[str]) -> str:
    """`train.py --seed 1` of `/usr/bin/python -u /home/me/train.py --seed 1`."""
    words = list(command)
    if words and Path(words[0]).name.startswith("python"):
        words = words[1:]
        while words and words[0].startswith("-") and words[0] not in ("-m", "-c", "-"):
            words = words[1:]
    if words and words[0].endswith(".py"):
        words[0] = Path(words[0]).name
    return shlex.join(words)

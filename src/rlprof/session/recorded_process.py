"""What each recorded process leaves in its session's folder while it runs, so that its stacks can be requested."""

from __future__ import annotations

from pathlib import Path

import msgspec

FOLDER = "stacks"
SUFFIX, DUMP_SUFFIX = ".json", ".txt"


class RecordedProcess(msgspec.Struct, frozen=True):
    """One file, named after the process: `stacks/PID.json`."""

    pid: int
    identity: str
    """See `rlprof.session.process`."""
    name: str
    """Name of a worker process. Empty for the driver."""
    main: int
    """Identifier of the main thread, as `threading.get_ident()` returns it."""
    thread: int
    """The operating system's number of rlprof's own thread, which answers requests."""
    signal: int = 0
    """Signal by which the process writes its stacks to `dump_file`. 0 if there is none."""
    file: int = -1
    """Number of the file descriptor of that file."""


class AnsweredThread(msgspec.Struct, frozen=True):
    name: str
    is_main: bool
    frames: list[tuple[str, int, str, str]]
    """(file, line, function, source), outermost first. The source is empty if it is unknown."""
    hidden: int = 0
    """Number of outer frames that are left out."""


class Answer(msgspec.Struct, frozen=True):
    """The answer of one process to a request for stacks."""

    pid: int
    name: str
    threads: list[AnsweredThread]


def entry_file(folder: Path, pid: int) -> Path:
    return folder / FOLDER / f"{pid}{SUFFIX}"


def dump_file(folder: Path, pid: int) -> Path:
    """File to which faulthandler writes the stacks."""
    return folder / FOLDER / f"{pid}{DUMP_SUFFIX}"


def is_own_thread(outermost_file: str) -> bool:
    """True for rlprof's own threads, by the file of their outermost function."""
    return outermost_file.replace("\\", "/").endswith(_OWN)


_OWN = ("rlprof/recording/background.py", "rlprof/recording/worker.py")

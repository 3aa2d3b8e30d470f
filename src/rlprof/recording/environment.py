"""The environment variables by which the command line, a recorded training and its child processes know each other."""

from __future__ import annotations

import json
import os
from collections.abc import MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from rlprof.session.process import identity_of

SWITCH = "RLPROF"
"""1: a program that imports rlprof is recorded."""

OPTIONS = "RLPROF_OPTIONS"
"""Arguments of `record()`, and `probes` and `quiet`, as JSON."""

SESSION = "RLPROF_SESSION"
"""The session folder that child processes write to. Set while a driver records."""

DRIVER = "RLPROF_DRIVER"
"""The process that records, as PID:IDENTITY. As long as it runs, other processes are its workers. A later process with
the same PID has another identity."""

RATE = "RLPROF_TSC"
"""The rate of the processor's clock as the driver has measured it, so that its workers need not."""

CONTROLLER = "RLPROF_CONTROLLER"
"""In an experiment: MODULE:FUNCTION, to be called in each process of the training when rlprof starts."""

STARTED_FILE = "RLPROF_STARTED_FILE"
"""A file that the first process in which rlprof starts deletes. If it is still there, `rlprof run` reports that nothing
was recorded."""

FOLDERS_FILE = "RLPROF_FOLDERS_FILE"
"""Files to which each driver appends a line with the folder of its session, for a view and a watcher that `rlprof run`
has started. The line is empty if the driver could write no session. The paths are separated as in PATH."""

STACKS = "RLPROF_STACKS"
"""0: no process samples its Python stack."""

HELD = "RLPROF_INTERRUPTS_HELD"
"""1: `rlprof run` has blocked SIGINT for the start of Python. rlprof's sitecustomize lets it through again."""

SOURCE = "RLPROF_SOURCE"
"""The argument with which `pip install` installs this rlprof, for a Python that has none."""

PATH = "PYTHONPATH"

INJECT = str(Path(__file__).parent.parent / "run" / "inject")
"""The folder with rlprof's sitecustomize, and nothing else that could be imported."""

Environment = MutableMapping[str, str]


def switch_on(environment: Environment, options: dict[str, Any] | None = None) -> None:
    """Every Python that is started with this environment is recorded."""
    environment[SWITCH] = "1"
    if options is not None:
        environment[OPTIONS] = json.dumps(options)
    path = environment.get(PATH)
    if not path:
        environment[PATH] = INJECT  # an empty part after a separator would be the working directory
    elif INJECT not in path.split(os.pathsep):
        environment[PATH] = os.pathsep.join((INJECT, path))


def options_of(environment: Environment) -> dict[str, Any]:
    """Raises ValueError if they are not what `switch_on` writes."""
    options = json.loads(environment.get(OPTIONS) or "{}")
    if not isinstance(options, dict):
        raise ValueError(f"{OPTIONS} is not a JSON object")
    return options


def announce(environment: Environment, session: Path | None, rate: str) -> None:
    """Make this process the driver that its children join."""
    environment[RATE] = rate
    environment[DRIVER] = f"{os.getpid()}:{identity_of(os.getpid())}"
    environment[SESSION] = "" if session is None else str(session)
    for path in filter(None, environment.pop(FOLDERS_FILE, "").split(os.pathsep)):
        # One write, so that lines of several drivers do not mix.
        with suppress(OSError), open(path, "ab", buffering=0) as file:
            file.write(f"{environment[SESSION]}\n".encode("utf-8", "surrogateescape"))


def add_folders_file(environment: Environment, path: str) -> None:
    """Let the drivers in this environment announce their sessions in one more file."""
    environment[FOLDERS_FILE] = os.pathsep.join(filter(None, (environment.get(FOLDERS_FILE), path)))


def announced_folders(path: Path) -> list[Path]:
    """The folders in a FOLDERS_FILE, in the order in which their drivers started."""
    try:
        lines = path.read_bytes().split(b"\n")[:-1]
    except OSError:
        return []
    return [Path(line.decode("utf-8", "surrogateescape")) for line in lines if line]


def samples_stacks(environment: Environment) -> bool:
    """False if the sampling of stacks is switched off."""
    return environment.get(STACKS) != "0"


def report_start(environment: Environment) -> None:
    """Let the waiting `rlprof run` know that rlprof has started."""
    path = environment.pop(STARTED_FILE, None)
    if path:
        with suppress(OSError):
            os.unlink(path)


def leave_session(environment: Environment) -> None:
    """Processes started next are not workers of the session that this process belongs to."""
    environment.pop(DRIVER, None)
    environment.pop(SESSION, None)


def session_to_join(environment: Environment) -> str | None:
    """The session folder of the living driver; empty if the driver has none. None: this process is a driver itself."""
    session = environment.get(SESSION)
    driver, _, identity = environment.get(DRIVER, "").partition(":")
    if session is None or not driver.isdecimal() or int(driver) == os.getpid():
        return None
    return session if identity_of(int(driver)) == identity else None

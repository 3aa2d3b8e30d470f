"""What the command line, a recorded training and its child processes tell each other: environment variables."""

from __future__ import annotations

import json
import os
from collections.abc import MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any

SWITCH = "RLPROF"
"""1: a program that finds rlprof is recorded."""

OPTIONS = "RLPROF_OPTIONS"
"""Those of `record()`, and `probes` and `quiet`, as JSON."""

SESSION = "RLPROF_SESSION"
"""The folder that child processes write to. Set while a driver records."""

DRIVER = "RLPROF_DRIVER"
"""The process that records: others are its workers for as long as it lives. Its number, and when it was started, as
another one may get the number when it has ended."""

RATE = "RLPROF_TSC"
"""What the driver has measured of the processor's clock, so that its workers need not."""

TURNS = "RLPROF_TURNS"
"""Of an arm of a comparison: two file descriptors, the one that says go, a byte with the number of iterations a turn,
and the one that is told; and 1 if that is to hear of the ledger, too, which takes longer to tell."""

ARM = "RLPROF_ARM"
"""Of an arm of a comparison: a random word that all its processes inherit, to find them by when the arm is ended."""

DOSES = "RLPROF_DOSES"
"""Of an experiment: the file that says how operations are slowed down, and their names, as JSON."""

HEARD = "RLPROF_HEARD"
"""A file that the first process in which rlprof starts removes: `rlprof run` says if there was none."""

SOURCE = "RLPROF_SOURCE"
"""What `pip install` installs this rlprof from, for a Python that has none."""

PATH = "PYTHONPATH"

INJECT = str(Path(__file__).parent.parent / "run" / "inject")
"""The folder with our sitecustomize, and nothing else that could be imported."""

Environment = MutableMapping[str, str]


def switch_on(environment: Environment, options: dict[str, Any] | None = None) -> None:
    """Every Python that is started with it is recorded."""
    environment[SWITCH] = "1"
    if options is not None:
        environment[OPTIONS] = json.dumps(options)
    path = environment.get(PATH)
    if not path:
        environment[PATH] = INJECT  # an empty one after a separator would be the working directory
    elif INJECT not in path.split(os.pathsep):
        environment[PATH] = os.pathsep.join((INJECT, path))


def options_of(environment: Environment) -> dict[str, Any]:
    """Raises ValueError where they are not what `switch_on` writes."""
    options = json.loads(environment.get(OPTIONS) or "{}")
    if not isinstance(options, dict):
        raise ValueError(f"{OPTIONS} is a JSON object")
    return options


def announce(environment: Environment, session: Path | None, rate: str) -> None:
    """This process is the driver; its children are to join."""
    environment[RATE] = rate
    environment[DRIVER] = f"{os.getpid()}:{started(os.getpid())}"
    environment[SESSION] = "" if session is None else str(session)


def hear(environment: Environment) -> None:
    """rlprof has started: whoever waits for it knows."""
    path = environment.pop(HEARD, None)
    if path:
        with suppress(OSError):
            os.unlink(path)


def leave_session(environment: Environment) -> None:
    """What is started next is no worker of the session that this process belongs to."""
    environment.pop(DRIVER, None)
    environment.pop(SESSION, None)


def session_to_join(environment: Environment) -> str | None:
    """The folder of the driver that lives; empty where that has none. None: this process is a driver itself."""
    session = environment.get(SESSION)
    driver, _, since = environment.get(DRIVER, "").partition(":")
    if session is None or not driver.isdecimal() or int(driver) == os.getpid() or not lives(int(driver)):
        return None
    return session if started(int(driver)) == since else None  # else another process has got its number


def started(pid: int) -> str:
    """When a process was started, in ticks since the machine was; empty where that cannot be known."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[19].decode()
    except (OSError, IndexError):
        return ""


def lives(pid: int) -> bool:
    """Whether there is such a process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # somebody else's
    return True

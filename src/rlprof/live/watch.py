"""Watches a training for alerts, in a process of its own that only reads the session.

`rlprof run --alert` starts it. So an alert also comes from a training that is stuck inside native code, or was killed.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from rlprof.errors import RlprofError
from rlprof.live.alerts import ALERT, Alerts
from rlprof.live.conditions import parse
from rlprof.live.feed import Feed
from rlprof.live.frame import Frame
from rlprof.live.priority import give_way
from rlprof.recording.environment import add_folders_file, announced_folders
from rlprof.render.names import literal
from rlprof.session.process import identity_of
from rlprof.session.requests import MarkRequest, write_marks, write_request

SECONDS = 1.0
COMMAND_SECONDS = 60.0
"""Longest time of an alert command."""


class Task(msgspec.Struct):
    """What to watch, as `rlprof run` passes it on."""

    folders_file: str
    """See rlprof.recording.environment.FOLDERS_FILE."""
    pid: int
    """The process that runs the training, or starts it. Without a session, the watcher ends with it."""
    identity: str
    conditions: list[str]
    command: str | None = None


def main() -> None:
    give_way()
    task = msgspec.json.decode(sys.argv[1], type=Task)
    try:
        folder = _wait_for_session(task)
        if folder is not None:
            _watch(folder, task)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(task.folders_file)


def _wait_for_session(task: Task) -> Path | None:
    while True:
        lives = identity_of(task.pid) == task.identity
        found = announced_folders(Path(task.folders_file))
        if found or not lives:
            return found[0] if found else None
        time.sleep(SECONDS / 4)


def _watch(folder: Path, task: Task) -> None:
    alerts = Alerts([parse(text) for text in task.conditions])
    feed = Feed(folder)
    while True:
        try:
            frame = feed.frame()
            if alerts.needs_report(frame):
                feed.refresh()
        except (RlprofError, OSError):  # not written yet, or deleted
            if not folder.exists():
                return
            time.sleep(SECONDS)
            continue
        for text in alerts.look(frame, feed.report, time.monotonic()):
            report(frame, text, task.command)
        if not frame.is_running or not folder.exists():
            with contextlib.suppress(RlprofError):  # the alerts are in the log in any case
                write_marks(folder)
            return
        time.sleep(SECONDS)


def report(frame: Frame, text: str, command: str | None) -> None:
    """Write an alert to standard error and to the session, and run the command."""
    text = literal(text)  # it may have names of operations, and a command may print it
    line = f"rlprof: alert: {literal(frame.name)}: {text}."
    with contextlib.suppress(OSError):
        os.write(2, f"{line}\n".encode("utf-8", "replace"))
    with contextlib.suppress(OSError):
        write_request(frame.folder, MarkRequest(ALERT, text, time.time_ns()))
    if command:
        _run(command, frame, text)


def _run(command: str, frame: Frame, text: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RLPROF")}
    environment |= {
        "RLPROF_ALERT": text,
        "RLPROF_ALERT_SESSION": str(frame.folder),
        "RLPROF_ALERT_NAME": literal(frame.name),
    }
    try:
        done = subprocess.run(
            command,
            shell=True,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=2,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        problem = f"ended with exit code {done.returncode}" if done.returncode else ""
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        late = isinstance(error, subprocess.TimeoutExpired)
        problem = f"took longer than {COMMAND_SECONDS:.0f} s and was ended" if late else str(error)
    if problem:
        with contextlib.suppress(OSError):
            os.write(2, f"rlprof: the alert command {problem}.\n".encode("utf-8", "replace"))


def start(conditions: Sequence[str], command: str | None, quiet: bool = False) -> None:
    """Start the watcher of the training that this process is about to become, or starts next.

    The watcher is no child of this process: a training may wait for all of its children. It learns the folder of the
    session from a file that this process's environment names.
    """
    pid = os.getpid()
    file, path = tempfile.mkstemp(prefix="rlprof-")
    os.close(file)
    add_folders_file(os.environ, path)
    task = Task(path, pid, identity_of(pid) or "", list(conditions), command)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RLPROF")}
    starter = subprocess.Popen(
        [sys.executable, "-P", "-c", _PROGRAM, str(Path(__file__).parents[2]), msgspec.json.encode(task).decode()],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL if quiet else None,
        env=environment, start_new_session=True,
    )  # fmt: skip
    starter.wait()


# The first process ends at once, so that the second one belongs to nobody.
_PROGRAM = """
import os, sys
if os.fork():
    os._exit(0)
sys.path.append(sys.argv[1])
del sys.argv[1]
from rlprof.live.watch import main
main()
"""

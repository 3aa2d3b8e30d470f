"""Replaces this process by a program, with an environment in which the program is recorded.

The program does not run inside this process: its `__main__`, arguments, path, signals and exit code would only resemble
the real ones.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import unquote

from rlprof.errors import RlprofError
from rlprof.recording.environment import HELD, SOURCE, leave_session, switch_on


def script_command(words: Sequence[str]) -> list[str]:
    """`train.py ARGS`: a file, or a folder or archive with a __main__.py, as Python accepts it."""
    script = words[0]
    if script != "-" and not Path(script).exists():
        hint = f"; to run a command, put -- before it: rlprof run -- {script}" if shutil.which(script) else ""
        where = "" if Path(script).is_absolute() else f" in {Path.cwd()}"
        raise RlprofError(f"there is no script {script}{where}{hint}")
    return [sys.executable, *words]


def module_command(words: Sequence[str]) -> list[str]:
    """`-m package.module ARGS`."""
    return [sys.executable, "-m", *words]


def any_command(words: Sequence[str]) -> list[str]:
    """`-- COMMAND ARGS`: every Python that the command starts is recorded."""
    if shutil.which(words[0]) is None:
        raise RlprofError(f"there is no command {words[0]}")
    return list(words)


def recorded_environment(options: Mapping[str, Any]) -> dict[str, str]:
    """A copy of this process's environment, in which every Python that starts is recorded."""
    environment = dict(os.environ)
    leave_session(environment)
    switch_on(environment, {name: value for name, value in options.items() if value is not None})
    environment[SOURCE] = _source()
    return environment


def _source() -> str:
    """The argument with which `pip install` installs this rlprof: its origin, or `rlprof` from a package index."""
    try:
        origin = json.loads(metadata.distribution("rlprof").read_text("direct_url.json") or "{}")
    except (metadata.PackageNotFoundError, ValueError, OSError):
        origin = {}
    url = unquote(str(origin.get("url", "")))
    if "vcs_info" in origin:
        return f"{origin['vcs_info'].get('vcs', 'git')}+{url}"
    return url.removeprefix("file://") or "rlprof"


def become(command: Sequence[str], options: Mapping[str, Any], is_python: bool = False) -> NoReturn:
    """Never returns: this process is the command from here on.

    Ctrl-C while Python starts is a fatal error of Python, with a long message. `is_python` is for a Python that is
    certain to run rlprof's sitecustomize: the interrupt waits until that can turn it into a KeyboardInterrupt.
    """
    environment = recorded_environment(options)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT] if is_python else [])
    if is_python and signal.SIGINT not in before:
        environment[HELD] = "1"
    # Python ignores these signals from its start, and a program started by exec would inherit that.
    for name in ("SIGPIPE", "SIGXFSZ"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.execvpe(command[0], list(command), environment)
    except (OSError, ValueError) as error:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        raise RlprofError(f"{command[0]} cannot be run: {getattr(error, 'strerror', None) or error}") from error

"""Runs a command as a child process, waits for its end, and reports if nothing in it was recorded.

A script is certain to be recorded, so it replaces this process: see command.py. Whether any other command starts a
Python that loads rlprof is only known when it has ended.
"""

from __future__ import annotations

import ctypes
import os
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from rlprof.errors import RlprofError
from rlprof.recording.environment import CONTROLLER, STARTED_FILE, report_start
from rlprof.run.command import become, recorded_environment

_PASSED_ON = ("SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGCONT", "SIGWINCH")
_BY_TERMINAL = ("SIGINT", "SIGQUIT", "SIGWINCH", "SIGCONT")
"""A terminal sends these to all its processes, so also to the command."""
_SI_KERNEL = 0x80
_PR_SET_PDEATHSIG = 1


def supervise(command: Sequence[str], options: Mapping[str, Any]) -> NoReturn:
    """Never returns: this process ends as the command did."""
    if CONTROLLER in os.environ:
        become(command, options)  # in an experiment, signals and pipes are for the training itself
    environment = recorded_environment(options)
    try:
        file, started_file = tempfile.mkstemp(prefix="rlprof-")
        os.close(file)
    except OSError:  # the command runs all the same, without the report
        become(command, options)
    environment[STARTED_FILE] = started_file
    try:
        code = _run(command, environment)
        if not Path(started_file).exists():
            report_start(os.environ)  # to the run that this one is part of
        elif not options.get("quiet"):
            print(f"rlprof: nothing was recorded, because {reason_for_nothing(command)}", file=sys.stderr)  # noqa: T201
    finally:
        with suppress(OSError):
            os.unlink(started_file)
    end_like(code)


def _run(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """The exit code; negative if a signal ended the command."""
    signals = {getattr(signal, name) for name in _PASSED_ON if hasattr(signal, name)}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals | {signal.SIGCHLD})

    prctl = getattr(ctypes.CDLL(None), "prctl", None)

    def begin() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if prctl is not None:  # a SIGKILL for this process is meant for the command
            prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    try:
        process = subprocess.Popen(command, env=environment, close_fds=False, preexec_fn=begin)  # noqa: PLW1509 - one thread
    except (OSError, ValueError) as error:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        raise RlprofError(f"{command[0]} cannot be run: {getattr(error, 'strerror', None) or error}") from error
    by_terminal = {getattr(signal, name) for name in _BY_TERMINAL if hasattr(signal, name)}
    while process.poll() is None:
        number, passed_on = _next_signal(signals | {signal.SIGCHLD}, by_terminal)
        if passed_on:
            with suppress(ProcessLookupError):
                process.send_signal(number)
    return int(process.returncode)


def _next_signal(signals: set[int], by_terminal: set[int]) -> tuple[int, bool]:
    """Its number, and False if the command has already got it from the terminal."""
    if hasattr(signal, "sigwaitinfo"):
        found = signal.sigwaitinfo(signals)
        number = found.si_signo
        return number, number != signal.SIGCHLD and not (number in by_terminal and found.si_code == _SI_KERNEL)
    number = signal.sigwait(signals)
    return number, number != signal.SIGCHLD and number not in by_terminal


def end_like(code: int) -> NoReturn:
    """End as a program with this exit code did. It is negative if a signal ended the program."""
    sys.stdout.flush()
    sys.stderr.flush()
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))  # it has dumped one
        with suppress(OSError, ValueError):  # SIGKILL and SIGSTOP cannot be changed
            signal.signal(-code, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {-code})
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 128 - code)


def reason_for_nothing(command: Sequence[str]) -> str:
    """Why nothing was recorded in a command, and what to do."""
    remedy = "or put `import rlprof.auto` at the top of the script"
    flag = _isolating_flag(command)
    name = Path(command[0]).name
    if flag is not None:
        other = "" if flag == "-S" else f", {remedy}"  # with -S, Python does not even find the installed packages
        return f"{name} {flag} does not load rlprof from PYTHONPATH; leave out {flag}{other}"
    return (
        f"`{shlex.join(command)[:200]}` ran no Python that loads rlprof from PYTHONPATH; "
        f"record the script that trains: rlprof run train.py, {remedy}"
    )


def _isolating_flag(command: Sequence[str]) -> str | None:
    """The option with which Python ignores PYTHONPATH, or imports no sitecustomize."""
    if not Path(command[0]).name.startswith("python"):
        return None
    words = iter(command[1:])
    for word in words:
        if not word.startswith("-") or word == "-":
            return None
        if word in ("-W", "-X"):
            next(words, None)
            continue
        for flag in "" if word.startswith("--") else word[1:]:
            if flag in "cm":
                return None
            if flag in "IES":
                return f"-{flag}"
    return None

"""Starts rlprof in this process: as the driver of a new session, or as a worker of its parent's session."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlprof.ledger.catalogue import STARTUP
from rlprof.ledger.hooks import RlprofWarning
from rlprof.ledger.profiler import Profiler, get_profiler
from rlprof.probes import phases
from rlprof.probes.registry import Attached, find_probes
from rlprof.recording import environment
from rlprof.run import OUTPUT

if TYPE_CHECKING:
    from rlprof.recording.recording import Recording

_started = False
_attached: Attached | None = None


def start() -> None:
    """Start once per process. A forked child gets its role from its parent. Warns instead of raising."""
    global _started
    if _started or _is_own_command():
        return
    _started = True
    profiler = get_profiler()
    session = environment.session_to_join(os.environ)
    if session == "":
        return  # the driver has no session to join
    try:
        options = environment.options_of(os.environ)
    except ValueError as error:
        profiler.warn(f"{environment.OPTIONS} cannot be read and is ignored", error)
        options = {}
    probes = options.pop("probes", True)
    try:
        if session is None:
            with _plain_warnings():
                _drive(profiler, options)
        else:
            _join(profiler, Path(session))
        if probes:
            _attach_probes(profiler)
    except Exception as error:
        profiler.warn("this training cannot be recorded as requested", error)


def drive(options: dict[str, Any]) -> Recording:
    """Record this process, whose training begins next. `rlprof train` uses it: it trains in its own process."""
    global _started
    _started = True
    profiler = get_profiler()
    environment.leave_session(os.environ)
    probes = options.pop("probes", True)
    recording = _drive(profiler, options)
    if probes:
        _attach_probes(profiler)
    return recording


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Print a warning of rlprof as one sentence. Python's format adds a line of code of rlprof."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RlprofWarning)
        yield
    for warning in caught:
        if issubclass(warning.category, RlprofWarning):
            with suppress(Exception):  # standard error is closed
                print(warning.message, file=sys.stderr)  # noqa: T201
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def _attach_probes(profiler: Profiler) -> None:
    global _attached
    _attached = Attached(profiler)
    _attached.attach(find_probes())


# A worker process needs neither of the modules imported below: it writes no session.


def _drive(profiler: Profiler, options: dict[str, Any]) -> Recording:
    from rlprof.api import record, start_captures  # noqa: PLC0415
    from rlprof.run.end_of_run import EndOfRunSummary  # noqa: PLC0415

    supervised = environment.STARTED_FILE in os.environ
    environment.report_start(os.environ)
    quiet = options.pop("quiet", False)
    captures = options.pop("captures", {})
    environment.switch_on(os.environ)
    try:
        recording = record(options.pop("name", None) or _program(), **options)
    except TypeError as error:
        profiler.warn(f"{environment.OPTIONS} has an option that record() does not have", error)
        recording = record(_program())
    recording.launched = True
    recording.quiet = quiet
    recording.before_end.append(phases.end)
    recording.before_end.append(partial(_list_output, recording))
    if not quiet:
        summary = EndOfRunSummary(recording, named=supervised)
        recording.at_end.append(summary)
        if environment.CONTROLLER not in os.environ:  # an experiment keeps no sessions anyway
            recording.if_blank = summary.no_session
    if captures:
        start_captures(recording, captures)
    if not profiler.samples_stacks:
        os.environ[environment.STACKS] = "0"  # for the workers
    environment.announce(os.environ, recording.folder, profiler.clock_rate)
    profiler.ledger.begin_startup(profiler.profile(STARTUP))
    _call_controller(profiler, recording)
    return recording


def _list_output(recording: Recording) -> None:
    """`rlprof run --top` writes the output of this process to a file in the session."""
    if recording.folder is not None and (recording.folder / OUTPUT).exists():
        recording.add_file(recording.folder / OUTPUT, "output")


def _join(profiler: Profiler, folder: Path) -> None:
    from rlprof.recording.worker import join  # noqa: PLC0415 - a driver does not need it

    _call_controller(profiler, None)
    profiler.samples_stacks = environment.samples_stacks(os.environ)
    join(profiler, folder)


def _call_controller(profiler: Profiler, recording: Recording | None) -> None:
    """If this training is part of an experiment, the experiment takes control of this process."""
    module, _, function = os.environ.get(environment.CONTROLLER, "").partition(":")
    if function:
        getattr(import_module(module), function)(profiler, os.environ, recording)


def _program() -> str | None:
    """Name of the program under `python -m` and `python -c`; else None. The file of a module is not known yet."""
    words = sys.orig_argv
    if sys.argv[:1] == ["-m"] and "-m" in words[:-1]:
        module = words[words.index("-m") + 1]
        return module.removesuffix(".__main__").rpartition(".")[2]
    return "command" if sys.argv[:1] == ["-c"] else None


def _is_own_command() -> bool:
    """True for a command such as `rlprof report` in a shell with RLPROF=1: it is not a training."""
    words = sys.orig_argv
    if sys.argv[:1] == ["-m"]:
        return "-m" in words[:-1] and words[words.index("-m") + 1].partition(".")[0] == "rlprof"
    script = Path(sys.argv[0]) if sys.argv else Path()
    return script.name == "rlprof" or script.parent == Path(__file__).parent.parent

"""Starts rlprof in this process: as the driver of a new session, or as a worker of the one that its parent records."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlprof.ledger.profiler import Profiler, get_profiler
from rlprof.probes import phases
from rlprof.probes.registry import Attached, find_probes
from rlprof.probes.startup import begin_startup
from rlprof.recording import environment

if TYPE_CHECKING:
    from rlprof.recording.recording import Recording

_started = False
_attached: Attached | None = None


def start() -> None:
    """Once a process; a forked child is what its parent makes of it. Warns instead of raising."""
    global _started, _attached
    if _started or _is_own_command():
        return
    _started = True
    profiler = get_profiler()
    session = environment.session_to_join(os.environ)
    if session == "":
        return  # the driver has none
    try:
        options = environment.options_of(os.environ)
    except ValueError as error:
        profiler.warn(f"{environment.OPTIONS} cannot be read, and is not followed", error)
        options = {}
    probes = options.pop("probes", True)
    try:
        if session is None:
            _drive(profiler, options)
        else:
            _join(profiler, Path(session))
        if probes:
            _attached = Attached(profiler)
            _attached.attach(find_probes())
    except Exception as error:
        profiler.warn("this training could not be recorded as asked", error)


def drive(options: dict[str, Any]) -> Recording:
    """Record this very process, whose training begins next: `rlprof train` is its own driver."""
    global _started, _attached
    _started = True
    profiler = get_profiler()
    environment.leave_session(os.environ)
    probes = options.pop("probes", True)
    recording = _drive(profiler, options)
    if probes:
        _attached = Attached(profiler)
        _attached.attach(find_probes())
    return recording


def _drive(profiler: Profiler, options: dict[str, Any]) -> Recording:
    from rlprof.recording.record import record  # noqa: PLC0415 - nor does it write a session
    from rlprof.run.end_of_run import Farewell  # noqa: PLC0415 - a worker says nothing

    environment.hear(os.environ)
    quiet = options.pop("quiet", False)
    captures = options.pop("captures", {})
    environment.switch_on(os.environ)
    try:
        recording = record(options.pop("name", None) or _program(), **options)
    except TypeError as error:
        profiler.warn(f"{environment.OPTIONS} has what record() does not know", error)
        recording = record(_program())
    recording.launched = True
    recording.quiet = quiet or environment.TURNS in os.environ
    recording.before_end.append(phases.end)
    if environment.TURNS in os.environ:
        recording.at_end.clear()  # the session of an arm is gone when it has ended; nobody would read of it
    elif not quiet:
        recording.at_end.append(Farewell(recording))
    if captures:
        from rlprof.recording.captures import begin  # noqa: PLC0415 - most runs capture nothing more

        try:
            begin(recording, captures)
        except Exception as error:
            profiler.warn("what was to be captured is not", error)
    environment.announce(os.environ, recording.folder, profiler.clock_rate)
    begin_startup(profiler)
    if environment.DOSES in os.environ:
        from rlprof.experiment.slowdown_memory import take_doses  # noqa: PLC0415 - nor experimented with

        take_doses(profiler, os.environ, samples=True)
    if environment.TURNS in os.environ:
        from rlprof.experiment.inside import take_turns  # noqa: PLC0415 - hardly any run is compared

        take_turns(profiler, os.environ)
    return recording


def _join(profiler: Profiler, folder: Path) -> None:
    from rlprof.recording.worker import join  # noqa: PLC0415 - a driver does not need it

    if environment.DOSES in os.environ:
        from rlprof.experiment.slowdown_memory import take_doses  # noqa: PLC0415 - hardly any run is experimented with

        take_doses(profiler, os.environ, samples=False)
    join(profiler, folder)


def _program() -> str | None:
    """Of `python -m package.module`, the module: Python itself does not know its file yet."""
    words = sys.orig_argv
    if sys.argv[:1] == ["-m"] and "-m" in words[:-1]:
        module = words[words.index("-m") + 1]
        return module.removesuffix(".__main__").rpartition(".")[2]
    return "command" if sys.argv[:1] == ["-c"] else None


def _is_own_command() -> bool:
    """`rlprof report` in a shell with RLPROF=1 is no training."""
    words = sys.orig_argv
    if sys.argv[:1] == ["-m"]:
        return "-m" in words[:-1] and words[words.index("-m") + 1].partition(".")[0] == "rlprof"
    script = Path(sys.argv[0]) if sys.argv else Path()
    return script.name == "rlprof" or script.parent == Path(__file__).parent.parent

"""`record()`: the one call with which a program is recorded, with its outputs and captures.

A recording itself knows neither reports nor captures. This module puts them together.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from rlprof.ledger.profiler import Profiler, get_profiler
from rlprof.probes.registry import Attached, find_probes
from rlprof.recording.recording import Recording
from rlprof.session.folder import sessions_folder


def record(
    name: str | None = None,
    *,
    dir: str | os.PathLike[str] | None = None,
    summary_every: int = 0,
    jsonl: str | os.PathLike[str] | None = None,
    tensorboard: str | os.PathLike[str] | None = None,
    flat: str | os.PathLike[str] | None = None,
    timeline: int | None = None,
    stacks: bool = True,
    settings: Mapping[str, Any] | None = None,
    profiler: Profiler | None = None,
) -> Recording:
    """Record this process's training to a session until the block, `stop()` or the process ends.

    name: session name (default: the script's name).
    dir: directory for sessions (default: $RLPROF_DIR, else ./rlprof-runs).
    summary_every: print a short table every so many iterations (default: never).
    jsonl: file to which one JSON line per iteration is appended.
    tensorboard: folder for TensorBoard scalars, one point per iteration.
    flat: folder that also gets `raw/NAME_TIMESTAMP.json` and `reports/NAME_TIMESTAMP_summary.txt`.
    timeline: keep single spans for `rlprof export`, up to this many in memory between two flushes.
    stacks: sample which lines of Python run, about 20 times per second (default: yes).
    settings: settings of the training, shown in the report.
    profiler: profiler to record (default: the global one).
    """
    # The training may change its working directory, so the path is made absolute now.
    parent = _absolute(Path(dir) if dir else sessions_folder())
    profiler = profiler or get_profiler()
    running = profiler.recording
    if isinstance(running, Recording) and running.launched:
        recording = running
        recording.take_over(name, settings or {}, timeline)
        if not stacks:
            recording.end_stacks()
    else:
        recording = Recording(profiler, str(name or default_name()), parent, settings or {})
        recording.at_end.append(partial(_write_outputs, recording))
        recording.if_unwritten = partial(_print_what_is_in_memory, profiler)
        recording.on_request = partial(_capture_on_request, recording)
        recording.start(timeline, stacks)
    if summary_every or jsonl is not None or tensorboard is not None:
        _show_live(recording, summary_every, jsonl, tensorboard)
    if flat is not None:
        recording.flat_folders.append(_absolute(Path(flat)))
    return recording


class CallbackRecording:
    """Base of the callbacks that record while a framework trains.

    If the program is already recorded, by `rlprof run` or by `record`, a callback only times operations.
    """

    def __init__(self, name: str | None = None, **options: Any) -> None:
        super().__init__()
        self.recording: Recording | None = None
        """The recording of the last training. None if the program was recorded already."""
        self._name = name
        self._options = options
        self._attached: Attached | None = None

    def _start(self, name: str | None, is_attached: bool) -> None:
        profiler = get_profiler()
        self.recording = None
        try:
            if not is_attached:
                self._attached = Attached(profiler)
                self._attached.attach(find_probes())
            if profiler.recording is None:
                self.recording = record(self._name or name, **self._options)
        except Exception as error:
            profiler.warn("this training cannot be recorded as configured", error)

    def _stop(self, how: str) -> None:
        if self.recording is not None:
            self.recording.stop(how)
        if self._attached is not None:
            self._attached.undo()
            self._attached = None


def default_name() -> str:
    """The name of the script."""
    script = Path(sys.argv[0]) if sys.argv and sys.argv[0] else Path("training")
    return script.parent.name if script.stem == "__main__" else script.stem


def start_captures(recording: Recording, requested: dict[str, Any]) -> None:
    """Start the captures that the command line requested. Warns instead of raising."""
    from rlprof.capture.captures import start  # noqa: PLC0415

    try:
        start(recording, requested)
    except Exception as error:
        recording.warn("a requested capture could not be started", error)


# The modules imported below take longer to import than everything else that starts a recording, and most are needed at
# its end only.


def _show_live(recording: Recording, *requested: Any) -> None:
    from rlprof.report import live_output  # noqa: PLC0415

    for make in live_output.watchers(recording.profiler, *requested):
        try:
            recording.watchers.append(make())
        except Exception as error:
            recording.warn("an output of the running training is left out", error)


def _write_outputs(recording: Recording, folder: Path) -> None:
    from rlprof.report.files import write_outputs  # noqa: PLC0415

    recording.verdict = write_outputs(folder, recording.flat_folders, recording.warn, recording.deadline)


def _print_what_is_in_memory(profiler: Profiler) -> None:
    from rlprof.render.running import to_summary  # noqa: PLC0415
    from rlprof.report.live_output import print_above_bars  # noqa: PLC0415

    summary = to_summary(profiler.snapshot())
    print_above_bars(f"rlprof: no session was written. This was recorded in memory:\n{summary}")


def _capture_on_request(recording: Recording, request: Path) -> None:
    from rlprof.capture.captures import capture_on_request  # noqa: PLC0415

    capture_on_request(recording, request)


def _absolute(path: Path) -> Path:
    try:
        return path.absolute()
    except OSError:  # the working directory is gone
        return path

"""`record()`: the one call with which a program is recorded."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rlprof.ledger.profiler import Profiler, get_profiler
from rlprof.recording.recording import Recording
from rlprof.session.folder import sessions_folder


def _absolute(path: Path) -> Path:
    try:
        return path.absolute()
    except OSError:  # the working directory is gone
        return path


def default_name() -> str:
    """The script's."""
    script = Path(sys.argv[0]) if sys.argv and sys.argv[0] else Path("training")
    return script.parent.name if script.stem == "__main__" else script.stem


def record(
    name: str | None = None,
    *,
    dir: str | os.PathLike[str] | None = None,
    summary_every: int = 0,
    jsonl: str | os.PathLike[str] | None = None,
    tensorboard: str | os.PathLike[str] | None = None,
    flat: str | os.PathLike[str] | None = None,
    timeline: int | None = None,
    settings: Mapping[str, Any] | None = None,
    profiler: Profiler | None = None,
) -> Recording:
    """Record this process's training to a session until the block, `stop()` or the process ends.

    name: of the session's folder; the script's unless told.
    dir: where the folder goes: RLPROF_DIR, or `rlprof-runs` here, unless told.
    summary_every: print a short table every so many iterations.
    jsonl: a file that gets one JSON line an iteration.
    tensorboard: a folder that gets scalars an iteration.
    flat: a folder that gets `raw/NAME_TIMESTAMP.json` and `reports/NAME_TIMESTAMP_summary.txt` as well.
    timeline: keep spans as events for `rlprof export`: so many in memory between two flushes.
    settings: of the training, to be shown with the report.
    """
    # A training may change its folder; where its session goes is decided here.
    parent = _absolute(Path(dir) if dir else sessions_folder())
    profiler = profiler or get_profiler()
    running = profiler.recording
    if isinstance(running, Recording) and running.launched:
        recording = running
        recording.take_over(name, settings or {}, timeline)
    else:
        recording = Recording(profiler, str(name or default_name()), parent, settings or {})
        recording.at_end.append(_leaves_files(recording))
        recording.start(timeline)
    if summary_every or jsonl is not None or tensorboard is not None:
        _watch(recording, summary_every, jsonl, tensorboard)
    if flat is not None:
        recording.flats.append(_absolute(Path(flat)))
    return recording


# What these import takes longer than all the rest of starting, and is not needed to record.


def _watch(recording: Recording, *asked: Any) -> None:
    from rlprof.recording import progress  # noqa: PLC0415

    for make in progress.watchers(recording.profiler, *asked):
        try:
            recording.watchers.append(make())
        except Exception as error:
            recording._warn("a view of the running training is left out", error)


def _leaves_files(recording: Recording) -> Callable[[Path], None]:
    def leave(folder: Path) -> None:
        from rlprof.recording.outputs import leave_files  # noqa: PLC0415

        recording.verdict = leave_files(folder, recording.flats, recording._warn, recording.deadline)

    return leave

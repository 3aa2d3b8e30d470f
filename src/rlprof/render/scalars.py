"""TensorBoard event files: scalars with the times at which they were measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlprof.errors import MissingLibraryError


class Scalars:
    """One event file. tensorboard's own writer is not used: it has a thread and its own clock."""

    def __init__(self, path: Path, started: float) -> None:
        """`started`: Unix time in seconds, the start of the run in TensorBoard."""
        try:
            from tensorboard.compat.proto import event_pb2, summary_pb2  # noqa: PLC0415 - optional, and slow to import
            from tensorboard.summary.writer.record_writer import RecordWriter  # noqa: PLC0415
        except ImportError as error:
            raise MissingLibraryError("TensorBoard scalars", "tensorboard", "tensorboard") from error
        self._event: Any = event_pb2.Event
        self._summary: Any = summary_pb2.Summary
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("wb")
        self._writer: Any = RecordWriter(self._file)
        self._writer.write(self._event(wall_time=started, file_version="brain.Event:2").SerializeToString())

    def write(self, time: float, step: int, tag: str, value: float) -> None:
        """One point of one curve, at a Unix time in seconds."""
        summary = self._summary(value=[self._summary.Value(tag=tag, simple_value=value)])
        self._writer.write(self._event(wall_time=time, step=step, summary=summary).SerializeToString())

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()

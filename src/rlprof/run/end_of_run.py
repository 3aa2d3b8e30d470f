"""The end-of-run summary: the last lines of a recorded run, on standard error."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlprof.recording.recording import Recording

PENDING = (
    "raw.json and summary.txt of this large session are still being written by another process. "
    "`rlprof report` shows the same."
)


class EndOfRunSummary:
    """Prints the verdict on a run and the folder of its session.

    It remembers which file standard error was at the start: a program may close it and open another file in its place.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._file = _standard_error()

    def __call__(self, folder: Path) -> None:
        if self._file is None or _standard_error() != self._file or not folder.exists():
            return
        verdict = self._recording.verdict
        lines = [PENDING] if verdict.pending else list(verdict.sentences)
        text = "".join(
            f"rlprof: {line}\n" for line in [*lines, f"Details: rlprof report {shlex.quote(_shown(folder))}"]
        )
        try:
            if sys.stderr is not None:
                sys.stderr.flush()
            os.write(2, text.encode("utf-8", "replace"))
        except (OSError, ValueError):
            pass  # standard error cannot be written any more


def _shown(folder: Path) -> str:
    """Relative to the working directory, if the folder is in it."""
    try:
        return str(folder.relative_to(Path.cwd()))
    except (OSError, ValueError):
        return str(folder)


def _standard_error() -> tuple[int, int] | None:
    """The device and inode of standard error; None if it is closed."""
    try:
        status = os.fstat(2)
    except OSError:
        return None
    return status.st_dev, status.st_ino

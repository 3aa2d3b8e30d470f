"""The last lines of a recorded run, on the standard error: where its session is, and what it says."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlprof.recording.recording import Recording


class Farewell:
    """Knows the standard error as it was at the start: a program may close it, and open something else in its place."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._file = _identity()

    def __call__(self, folder: Path) -> None:
        if self._file is None or _identity() != self._file or not folder.exists():
            return
        lines = [f"rlprof: {line}" for line in self._recording.verdict] + [f"rlprof: session in {_shown(folder)}"]
        try:
            if sys.stderr is not None:
                sys.stderr.flush()
            os.write(2, ("\n".join(lines) + "\n").encode("utf-8", "replace"))
        except (OSError, ValueError):
            pass  # nobody is there to read it


def _shown(folder: Path) -> str:
    """As short as it can be typed from here."""
    try:
        return str(folder.relative_to(Path.cwd()))
    except (OSError, ValueError):
        return str(folder)


def _identity() -> tuple[int, int] | None:
    try:
        status = os.fstat(2)
    except OSError:
        return None
    return status.st_dev, status.st_ino

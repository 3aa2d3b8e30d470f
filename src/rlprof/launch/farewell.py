"""The last lines of a recorded run, on the standard error: where its session is, and what it says."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

_FIRST = re.compile(r"[\d.,]+ steps/s in |In |Nothing ")
"""How the verdict begins."""


class Farewell:
    """Knows the standard error as it was at the start: a program may close it, and open something else in its place."""

    def __init__(self) -> None:
        self._file = _identity()

    def __call__(self, folder: Path) -> None:
        if self._file is None or _identity() != self._file or not folder.exists():
            return
        lines = [f"rlprof: {line}" for line in verdict(folder)] + [f"rlprof: session in {_shown(folder)}"]
        try:
            if sys.stderr is not None:
                sys.stderr.flush()
            os.write(2, ("\n".join(lines) + "\n").encode("utf-8", "replace"))
        except (OSError, ValueError):
            pass  # nobody is there to read it


def verdict(folder: Path) -> list[str]:
    """Of summary.txt, the sentences between the name and the tables."""
    from rlprof.recording.leave import SUMMARY  # noqa: PLC0415 - by now it is imported; at the start it would be dear

    try:
        lines = (folder / SUMMARY).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []  # it could not be written, which was said
    head = lines[: lines.index("")] if "" in lines else lines
    # How a run ended may take several lines.
    begin = next((place for place, line in enumerate(head) if _FIRST.match(line)), len(head))
    sentences = head[begin:]
    advice = " ".join(sentences[2:])  # it may be longer than a line of the file; the terminal breaks it better
    return [*sentences[:2], advice] if advice else sentences


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

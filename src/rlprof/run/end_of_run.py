"""The end-of-run summary: the last lines of a recorded run, on standard error."""

from __future__ import annotations

import os
import shlex
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlprof.recording.recording import Recording

NO_SESSION = "rlprof: no session was kept, because the program ended before anything was recorded"
PENDING = (
    "raw.json and summary.txt of this large session are still being written by another process. "
    "`rlprof report` shows the same."
)


MOST_LINES = 8
"""Lines of a summary, with the one that names the session."""
WIDTH = 100
"""Width of a summary that goes into a file or a pipe."""
_PREFIX = "rlprof: "


class EndOfRunSummary:
    """Prints the verdict on a run and the folder of its session.

    With `named`, it begins with the name of the session, because a command may run several programs. It remembers which
    file standard error was at the start: a program may close it and open another file in its place.
    """

    def __init__(self, recording: Recording, named: bool = False) -> None:
        self._recording = recording
        self._named = named
        self._file = _standard_error()

    def __call__(self, folder: Path) -> None:
        if not folder.exists():
            return
        verdict = self._recording.verdict
        sentences = [PENDING] if verdict.pending else list(verdict.sentences)
        if self._named and sentences:
            sentences[0] = f"{folder.name}: {sentences[0]}"
        lines = [*summary_lines(sentences, _width()), f"{_PREFIX}Details: rlprof report {shlex.quote(_shown(folder))}"]
        self._print(lines)

    def no_session(self) -> None:
        self._print([NO_SESSION])

    def _print(self, lines: Sequence[str]) -> None:
        if self._file is None or _standard_error() != self._file:
            return
        text = "".join(f"{line}\n" for line in lines)
        try:
            if sys.stderr is not None:
                sys.stderr.flush()
            os.write(2, text.encode("utf-8", "replace"))
        except (OSError, ValueError):
            pass  # standard error cannot be written any more


def summary_lines(sentences: Sequence[str], width: int) -> list[str]:
    """The sentences, wrapped. If they take too many lines, the first and the last one stay: how fast the training is,
    and what to change."""
    kept = [_wrapped(sentence, width) for sentence in sentences]
    while len(kept) > 2 and sum(map(len, kept)) >= MOST_LINES:
        del kept[-2]
    lines = [line for wrapped in kept for line in wrapped]
    if len(lines) >= MOST_LINES:
        lines[MOST_LINES - 2 :] = [f"{lines[MOST_LINES - 2][: width - 1]}…"]
    return lines


def _wrapped(sentence: str, width: int) -> list[str]:
    indent = " " * len(_PREFIX)
    return textwrap.wrap(
        sentence, max(width, 40), initial_indent=_PREFIX, subsequent_indent=indent, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def _width() -> int:
    try:
        return os.get_terminal_size(2).columns or WIDTH
    except (OSError, ValueError):
        return WIDTH


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

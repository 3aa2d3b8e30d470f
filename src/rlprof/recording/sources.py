"""Text of the statements that were on the stack. Read on the flushing thread, once per line."""

from __future__ import annotations

import linecache
import os
import re
import tokenize
from pathlib import PurePath

from rlprof.session.secrets import mask_text
from rlprof.session.stacks import MOST_SOURCE

MOST_LINES = 12
"""Lines of one statement, up and down from the sampled one."""

MOST_FILES = 16
"""Files kept in memory."""

MOST_BYTES = 4 << 20
"""Larger files are generated, and nobody reads their lines."""


class Sources:
    """Reads lines of files as they are now. Of cells in a notebook, `linecache` has the text."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._files: dict[str, list[str]] = {}

    def statement(self, file: str, number: int) -> tuple[str, bool]:
        """The statement at a line, secrets masked, and whether it is in a loop of its function. Empty if unknown."""
        lines = self._lines(file)
        if not 0 < number <= len(lines):
            return "", False
        first, last = _extent(lines, number - 1)
        text = " ".join(line.strip() for line in lines[first : last + 1])
        return mask_text(text)[:MOST_SOURCE], _in_loop(lines, first)

    def can_be_opened(self, file: str) -> bool:
        """False for code without a file, as that of `python -c` and what a library makes with `exec`."""
        path = os.path.join(self._folder, file)
        # A module in an archive has the path of the archive before its own.
        return file in linecache.cache or any(map(os.path.isfile, (path, *map(str, PurePath(path).parents))))

    def _lines(self, file: str) -> list[str]:
        if file not in self._files:
            if len(self._files) >= MOST_FILES:
                del self._files[next(iter(self._files))]
            self._files[file] = self._read(file)
        return self._files[file]

    def _read(self, file: str) -> list[str]:
        path = os.path.join(self._folder, file)
        try:
            if os.path.isfile(path):
                if os.path.getsize(path) > MOST_BYTES:
                    return []
                with tokenize.open(path) as opened:
                    return opened.readlines()
            kept = linecache.cache.get(file)
            return list(kept[2]) if kept is not None and len(kept) > 2 else []
        except (OSError, SyntaxError, ValueError):  # unreadable, or in an encoding that nobody knows
            return []


def _extent(lines: list[str], place: int) -> tuple[int, int]:
    """The first and last line of the statement at a line: its brackets are balanced. Parsing a whole file would hold
    the interpreter's lock too long."""
    first = last = place
    while _open(lines[first : last + 1])[1] > 0 and first > max(0, place - MOST_LINES):
        first -= 1
    while _open(lines[first : last + 1])[0] > 0 and last < min(len(lines) - 1, place + MOST_LINES):
        last += 1
    if first == last == place and not lines[place].rstrip().endswith(":"):
        first, last = _enclosing(lines, place)
    return first, last


def _enclosing(lines: list[str], place: int) -> tuple[int, int]:
    """The statement around a line whose own brackets are balanced, as one argument of a call over several lines."""
    for first in range(place - 1, max(-1, place - MOST_LINES), -1):
        opened, closed = _open(lines[first:place])
        if opened > closed:
            last = place
            while _open(lines[first : last + 1])[0] > 0 and last < min(len(lines) - 1, place + MOST_LINES):
                last += 1
            return first, last
        if _indent(lines[first]) < _indent(lines[place]) and lines[first].rstrip().endswith(":"):
            break
    return place, place


def _open(lines: list[str]) -> tuple[int, int]:
    """Brackets that are opened and not closed, and closed and not opened. Text and comments are left out roughly."""
    opened = closed = 0
    for line in lines:
        for char in _WITHOUT_TEXT.sub("", line):
            if char in "([{":
                opened += 1
            elif char in ")]}":
                opened, closed = (opened - 1, closed) if opened else (0, closed + 1)
    return opened, closed


def _in_loop(lines: list[str], place: int) -> bool:
    """True if a line above with less indentation begins a loop, before the function begins."""
    indent = _indent(lines[place])
    if _LOOP.match(lines[place]):
        return True
    for line in reversed(lines[max(0, place - MOST_BODY) : place]):
        if line.strip() and _indent(line) < indent:
            if _LOOP.match(line):
                return True
            if _FUNCTION.match(line):
                return False
            indent = _indent(line)
    return False


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


_WITHOUT_TEXT = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|#.*")
_LOOP = re.compile(r"\s*(?:async\s+)?(?:for|while)\b")
_FUNCTION = re.compile(r"\s*(?:async\s+)?(?:def|class)\b|\s*@")
MOST_BODY = 2000
"""Lines of one function that are searched for a loop."""

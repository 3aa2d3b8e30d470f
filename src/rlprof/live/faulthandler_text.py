"""Reads the stacks that Python's faulthandler writes, of Python 3.11 to 3.14."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_THREAD = re.compile(r"(?:Current thread|Thread) 0x([0-9a-fA-F]+)(?: \[(.*)\])? \(most recent call first\):")
_FRAME = re.compile(r'  File (?:"(.*)"|\?\?\?), line (\d+|\?\?\?) in (.*)')
_ESCAPE = re.compile(r"\\x([0-9a-f]{2})|\\u([0-9a-f]{4})|\\U([0-9a-f]{8})")


MOST_FRAMES = 100
"""faulthandler writes at most so many frames of a thread. Python 3.13 does not say that there are more."""
_OUTERMOST = ("<module>", "_bootstrap")


@dataclass
class DumpedThread:
    ident: int
    """As `threading.get_ident()` returns it."""
    name: str
    """The operating system's name of the thread, which Python 3.14 writes. Empty if unknown."""
    frames: list[tuple[str, int, str]] = field(default_factory=list)
    """(file, line, function), innermost first, as it is written. The line is 0 if it is unknown."""
    is_cut: bool = False
    """Outer frames are missing."""


def read_dump(text: str) -> list[DumpedThread]:
    """The threads in a dump. Lines of other forms are left out, such as those about a garbage collection."""
    threads: list[DumpedThread] = []
    for line in text.splitlines():
        if begin := _THREAD.fullmatch(line):
            threads.append(DumpedThread(int(begin[1], 16), begin[2] or ""))
        elif threads and (frame := _FRAME.fullmatch(line)):
            number = int(frame[2]) if frame[2].isdecimal() else 0
            threads[-1].frames.append((_unescaped(frame[1] or "???"), number, _unescaped(frame[3])))
        elif threads and line == "  ...":
            threads[-1].is_cut = True
    for thread in threads:
        thread.is_cut |= len(thread.frames) >= MOST_FRAMES and thread.frames[-1][2] not in _OUTERMOST
    return threads


def _unescaped(text: str) -> str:
    """faulthandler writes all characters beyond ASCII as escapes."""

    def char(found: re.Match[str]) -> str:
        number = int(next(filter(None, found.groups())), 16)
        return chr(number) if number <= 0x10FFFF else found[0]

    return _ESCAPE.sub(char, text).encode("utf-8", "replace").decode()

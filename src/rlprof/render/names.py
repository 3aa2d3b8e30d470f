"""Names for people: on one line, and no longer than the space for them."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size

from rlprof.ledger.catalogue import AFTER_TRAINING, STARTUP, SUSPENDED

_OUTSIDE = {STARTUP: "start-up", AFTER_TRAINING: "work after the training", SUSPENDED: "stops of the process"}

LONGEST = 2_000
"""Most characters of a name or paragraph that are processed. A file may have names of megabytes."""


def outside_name(part: str) -> str:
    """The name of a part of the run that is not training."""
    return _OUTSIDE.get(part, part)


LONGEST_PATH = 40
"""Most cells of a path with a line number, in tables and charts."""


def bounded(name: str, most: int = LONGEST) -> str:
    """At most `most` characters of a name, from its start and its end."""
    return name if len(name) <= most else f"{name[: 2 * most // 3]}\u2026{name[-(most // 3) :]}"


def literal(name: str, ascii_only: bool = False) -> str:
    """A name on one line. Characters that would move the cursor are written as escapes."""
    shown = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in name)
    return shown.encode("ascii", "backslashreplace").decode() if ascii_only else shown


def short_path(where: str, width: int = LONGEST_PATH, ellipsis: str = "\u2026") -> str:
    """A path with a line number. Of a long one, only the file and the line, because the folders are often the same."""
    return where if cell_len(where) <= width else shorten(where.rpartition("/")[2], width, ellipsis)


def shorten(name: str, width: int, ellipsis: str = "\u2026") -> str:
    """At most `width` cells of a name. The middle is cut, because names that begin alike often differ at the end."""
    if cell_len(name) <= width:
        return name
    room = width - len(ellipsis)
    tail_start = len(name)
    while tail_start > 0 and cell_len(name[tail_start - 1 :]) <= room // 3:
        tail_start -= 1
    tail = name[tail_start:]
    return set_cell_size(name, room - cell_len(tail)).rstrip() + ellipsis + tail

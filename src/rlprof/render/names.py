"""Names as people read them: on one line, and no longer than there is room."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size

LONGEST = 2_000
"""Characters of a name or a paragraph that are looked at. Nobody reads more, and a file may have names of megabytes."""


def bounded(name: str, most: int = LONGEST) -> str:
    """At most so many characters of it, from its begin and its end."""
    return name if len(name) <= most else f"{name[: 2 * most // 3]}\u2026{name[-(most // 3) :]}"


def literal(name: str, ascii_only: bool = False) -> str:
    """A name on one line, whatever is in it: characters that would move the cursor are written as escapes."""
    shown = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in name)
    return shown.encode("ascii", "backslashreplace").decode() if ascii_only else shown


def shorten(name: str, width: int, ellipsis: str = "\u2026") -> str:
    """At most `width` cells of it. The middle goes: names that begin alike often differ at the end."""
    if cell_len(name) <= width:
        return name
    room = width - len(ellipsis)
    tail_start = len(name)
    while tail_start > 0 and cell_len(name[tail_start - 1 :]) <= room // 3:
        tail_start -= 1
    tail = name[tail_start:]
    return set_cell_size(name, room - cell_len(tail)).rstrip() + ellipsis + tail

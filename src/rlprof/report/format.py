"""Figures and names as people read them, the same in every output."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size

# Each up to where the next begins. Above 999.5 three digits would be 1000: that is the next unit's 1.00 already.
_UNITS = ((1, "ns", 999.5), (1e3, "us", 999.5), (1e6, "ms", 999.5), (1e9, "s", 3600.0), (3600e9, "h", float("inf")))
_COUNTS = ((1e6, "M", 999.5), (1e9, "G", 999.5), (1e12, "T", float("inf")))


def duration(ns: float) -> str:
    """Three digits and a unit: `1.23 ms`. At most seven characters, for anything below eleven years."""
    scale, unit = next((scale, unit) for scale, unit, end in _UNITS if ns / scale < end)
    value = ns / scale
    if unit == "ns" or value >= 99.95:
        return f"{value:.0f} {unit}"
    return f"{value:.1f} {unit}" if value >= 9.995 else f"{value:.2f} {unit}"


def count(number: int) -> str:
    """Exact as long as seven characters are enough: `999,999`, then `1.23M`."""
    if number < 1_000_000:
        return f"{number:,}"
    scale, unit = next((scale, unit) for scale, unit, end in _COUNTS if number / scale < end)
    return f"{number / scale:.3g}{unit}"


def percent(share: float) -> str:
    return f"{share:.1f}%"


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


def size(number: float) -> str:
    """Bytes in three digits: `1.23 GB`. A kilobyte is 1,024."""
    for unit in ("B", "KB", "MB", "GB"):
        if number < 999.5:
            digits = 0 if unit == "B" or number >= 99.95 else 1 if number >= 9.995 else 2
            return f"{number:.{digits}f} {unit}"
        number /= 1024
    return f"{number:,.3g} TB" if number < 999.5 else f"{number:.2e} TB"


def rate(number: float) -> str:
    """Per second, in three digits or whole: `0.123`, `12.3`, `1,234`."""
    if number >= 99.95:
        return f"{number:,.0f}"
    return f"{number:.3g}"


def many(number: float, noun: str) -> str:
    """With its noun: `1 step`, `2.5 steps`, `1,024 steps`."""
    shown = rate(number) if number != round(number) else f"{number:,.0f}"
    return f"{shown} {noun}" if shown == "1" else f"{shown} {noun}s"

"""Figures for people, the same in every output: three digits and a unit."""

from __future__ import annotations

from collections.abc import Callable

# Each unit ends where the next begins: above 999.5, three digits would read 1000, which is 1.00 of the next unit.
_DURATIONS = ((1, "ns", 999.5), (1e3, "us", 999.5), (1e6, "ms", 999.5), (1e9, "s", 600.0))
_SIZES = ((1, "B", 999.5), (2**10, "KB", 999.5), (2**20, "MB", 999.5), (2**30, "GB", 999.5))
_LARGEST = 1e300  # a report of unknown origin may have integers that do not fit a float
_COUNTS = ((1e6, "M", 999.5), (1e9, "G", 999.5), (1e12, "T", float("inf")))


def duration(ns: float) -> str:
    """`1.23 ms`, `25m03s`, `1.23 h`. At most seven characters, for anything below eleven years."""
    ns = min(ns, _LARGEST)
    for scale, unit, end in _DURATIONS:
        if ns / scale < end:
            return f"{ns:.0f} ns" if unit == "ns" else f"{_digits(ns / scale)} {unit}"
    if ns < 3599.5e9:
        minutes, seconds = divmod(round(ns / 1e9), 60)
        return f"{minutes}m{seconds:02}s"
    return f"{_digits(ns / 3600e9)} h"


def size(number: float) -> str:
    """Bytes: `1.23 GB`. A kilobyte is 1,024."""
    number = min(number, _LARGEST)
    for scale, unit, end in _SIZES:
        if number / scale < end:
            return f"{number:.0f} B" if unit == "B" else f"{_digits(number / scale)} {unit}"
    terabytes = number / 2**40
    return f"{terabytes:,.3g} TB" if terabytes < 999.5 else f"{terabytes:.2e} TB"


def count(number: float) -> str:
    """Whole numbers are exact up to seven characters: `999,999`, then `1.23M`. Others: `12.5`."""
    number = min(number, _LARGEST)
    if number < 1_000_000:
        return f"{number:,.0f}" if number >= 100 or number == round(number) else f"{number:.3g}"
    scale, unit = next((scale, unit) for scale, unit, end in _COUNTS if number / scale < end)
    return f"{number / scale:.3g}{unit}"


def percent(share: float) -> str:
    """A share in percent: `12.3%`."""
    return f"{share:.1f}%"


def as_percent(fraction: float) -> str:
    """A share between 0 and 1 as `12.3%`."""
    return percent(100 * fraction)


def rate(number: float) -> str:
    """A rate with three digits or as a whole number: `0.123`, `12.3`, `1,234`."""
    return f"{number:,.0f}" if number >= 99.95 else f"{number:.3g}"


def if_known(figure: Callable[[float], str], value: float | None) -> str:
    """The figure of a value; empty for None, which was not measured."""
    return "" if value is None else figure(value)


def many(number: float, noun: str) -> str:
    """A number with its noun: `1 step`, `2.5 steps`, `1,024 steps`, `2 copies`."""
    shown = rate(number) if number != round(number) else f"{number:,.0f}"
    if shown == "1":
        return f"1 {noun}"
    if noun.endswith("y"):
        return f"{shown} {noun[:-1]}ies"
    return f"{shown} {noun}{'es' if noun.endswith('s') else 's'}"


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"

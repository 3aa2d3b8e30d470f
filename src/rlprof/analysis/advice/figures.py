"""Arithmetic that any facts can go through, and figures as people read them.

Facts may come from a JSON file that somebody else made: zeros, None and numbers beyond a float's range must neither
raise nor turn into advice.
"""

from __future__ import annotations

HUGE = 1e18
"""More ns, bytes or calls than any training has: 30 years, an exabyte. What is beyond is cut to it."""

_DURATIONS = ((1, "ns", 999.5), (1e3, "us", 999.5), (1e6, "ms", 999.5), (1e9, "s", 3600.0), (3600e9, "h", float("inf")))
_SIZES = ((2**10, "KB", 999.5), (2**20, "MB", 999.5), (2**30, "GB", 999.5), (2**40, "TB", float("inf")))


def number(value: float | None) -> float:
    """A float between 0 and HUGE; what was not measured, or is negative, is 0."""
    return float(min(HUGE, max(0.0, value))) if value is not None else 0.0


def ratio(part: float | None, whole: float | None) -> float:
    """Between 0 and HUGE; 0 of nothing."""
    divisor = number(whole)
    return min(HUGE, number(part) / divisor) if divisor else 0.0


def fraction(part: float | None, whole: float | None) -> float:
    """Between 0 and 1."""
    return min(1.0, ratio(part, whole))


def duration(ns: float) -> str:
    """Three digits and a unit: `1.23 ms`, as the reports write it."""
    return _scaled(number(ns), _DURATIONS)


def size(amount: float) -> str:
    """Of bytes: `1.23 MB`."""
    return _scaled(number(amount), _SIZES)


def percent(share: float) -> str:
    """Of a share between 0 and 1."""
    return f"{100 * share:.1f}%"


def count(amount: float) -> str:
    """Three digits where it is no whole number: `1,024`, `12.5`."""
    whole = number(amount)
    if whole >= 1e6:
        return f"{whole:.3g}"
    return f"{whole:,.0f}" if whole >= 100 or whole == round(whole) else f"{whole:.3g}"


def many(amount: float, noun: str) -> str:
    """With the noun: `1 step`, `2.5 steps`."""
    shown = count(round(number(amount), 1))
    return f"{shown} {noun}" if shown == "1" else f"{shown} {noun}s"


def _scaled(value: float, units: tuple[tuple[float, str, float], ...]) -> str:
    scale, unit = next((scale, unit) for scale, unit, end in units if value / scale < end)
    shown = value / scale
    if unit == "ns" or shown >= 99.95:
        return f"{shown:.0f} {unit}"
    return f"{shown:.1f} {unit}" if shown >= 9.995 else f"{shown:.2f} {unit}"

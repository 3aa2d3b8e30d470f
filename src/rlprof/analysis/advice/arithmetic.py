"""Arithmetic that any facts can go through.

Facts may come from a JSON file that somebody else made: zeros, None and numbers beyond a float's range must neither
raise nor turn into advice.
"""

from __future__ import annotations

HUGE = 1e18
"""More ns, bytes or calls than any training has: 30 years, an exabyte. What is beyond is cut to it."""


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

"""Arithmetic that is safe for any facts.

Facts may come from a JSON file of unknown origin. Zeros, None and numbers beyond the range of a float must neither
raise nor lead to advice.
"""

from __future__ import annotations

HUGE = 1e18
"""More ns, bytes or calls than any training has: 30 years, an exabyte. Larger values are cut to this."""


def number(value: float | None) -> float:
    """A float between 0 and HUGE. None and negative values become 0."""
    return float(min(HUGE, max(0.0, value))) if value is not None else 0.0


def ratio(part: float | None, whole: float | None) -> float:
    """Between 0 and HUGE; 0 if `whole` is 0."""
    divisor = number(whole)
    return min(HUGE, number(part) / divisor) if divisor else 0.0


def fraction(part: float | None, whole: float | None) -> float:
    """Between 0 and 1."""
    return min(1.0, ratio(part, whole))

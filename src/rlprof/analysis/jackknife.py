"""The uncertainty of a figure computed from several parts, by leaving out each part in turn."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

from rlprof.analysis.inference import Interval, t_distribution

Part = TypeVar("Part")


def jackknife(parts: Sequence[Part], of: Callable[[Sequence[Part]], float], alpha: float, least: int = 3) -> Interval:
    """A figure of all parts with its confidence interval. No interval with fewer than `least` parts."""
    count = len(parts)
    if count < least:
        return Interval(of(parts), None, None)
    return left_out(of(parts), [of([*parts[:place], *parts[place + 1 :]]) for place in range(count)], alpha)


def left_out(whole: float, without: Sequence[float], alpha: float) -> Interval:
    """The same from known figures: of all parts, and without each of them."""
    count = len(without)
    mean = sum(without) / count
    error = math.sqrt((count - 1) / count * sum((one - mean) ** 2 for one in without))
    half = float(t_distribution().ppf(1 - alpha / 2, count - 1)) * error
    return Interval(whole, whole - half, whole + half)

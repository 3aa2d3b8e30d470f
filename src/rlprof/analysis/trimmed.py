"""A mean that a few outliers do not affect: other programs on the machine disturb some iterations and some pairs.

From ten values on, the fifth at each end is left out, and the error is that of the winsorized values (Tukey and
McLaughlin, 1963): as rarely wrong as the mean of all values, and more precise with outliers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

LEAST = 10
"""With fewer values, leaving some out costs more than it gains."""
CUT = 0.2


@dataclass(frozen=True, slots=True)
class Mean:
    value: float
    error: float
    """Its standard error."""
    freedom: float
    """Degrees of freedom of the error."""


def cut_of(count: int) -> int:
    """How many values are left out at each end."""
    return int(CUT * count) if count >= LEAST else 0


def kept(values: Sequence[float]) -> list[int]:
    """Indices of the values that are not left out."""
    cut = cut_of(len(values))
    places = sorted(range(len(values)), key=values.__getitem__)
    return sorted(places[cut : len(values) - cut])


def trimmed_mean(values: Sequence[float]) -> Mean:
    """Needs at least two values."""
    cut = cut_of(len(values))
    inner = sorted(values)[cut : len(values) - cut]
    winsorized = [inner[0]] * cut + inner + [inner[-1]] * cut
    left = len(inner)
    error = stdev(winsorized) * math.sqrt((len(values) - 1) / (left * (left - 1)))
    return Mean(fmean(inner), error, left - 1)

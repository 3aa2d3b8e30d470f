"""A mean that a few values far off do not move: of turns and of pairs of processes, some meet what others do on the
machine.

From ten values on, the fifth at each end is left out, and the error is that of the winsorized values (Tukey and
McLaughlin, 1963): as rarely wrong as the mean of all, and surer where some are far off.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

LEAST = 10
"""Of fewer values, leaving some out costs more than it brings."""
CUT = 0.2


@dataclass(frozen=True, slots=True)
class Mean:
    value: float
    error: float
    """Its standard error."""
    freedom: float
    """Degrees of freedom of that."""


def cut_of(count: int) -> int:
    """How many values are left out at each end."""
    return int(CUT * count) if count >= LEAST else 0


def kept(values: Sequence[float]) -> list[int]:
    """The places of those that are not left out."""
    cut = cut_of(len(values))
    places = sorted(range(len(values)), key=values.__getitem__)
    return sorted(places[cut : len(values) - cut])


def trimmed_mean(values: Sequence[float]) -> Mean:
    """Of two values at least."""
    cut = cut_of(len(values))
    inner = sorted(values)[cut : len(values) - cut]
    winsorized = [inner[0]] * cut + inner + [inner[-1]] * cut
    left = len(inner)
    error = stdev(winsorized) * math.sqrt((len(values) - 1) / (left * (left - 1)))
    return Mean(fmean(inner), error, left - 1)

"""Did the training slow down as it went, and which operation explains it? Robust against single slow iterations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from statistics import median

from rlprof.analysis.breakdown import RLPROF
from rlprof.analysis.series import Series

WARM_UP = 0.1
"""Of the points, at the start: caches fill, code is compiled, memory is allocated."""

BLOCKS = 12
"""The points are put together to so many. Neighbours are alike on a machine that others use too, and a test that takes
each for a witness of its own would see trends everywhere; the median of a block also forgets single slow iterations."""

FEWEST_POINTS = 2 * BLOCKS

MOST = 1e18
"""Beyond any time or count: facts may be anybody's."""


@dataclass(frozen=True, slots=True)
class Trend:
    """A straight line through values that were taken one after the other."""

    slope: float
    """Per unit of x: the median of the slopes between all pairs (Theil-Sen)."""
    start: float
    """The line at the first x, and at the last."""
    end: float
    z: float
    """Mann-Kendall: how many standard deviations the number of rising pairs is away from chance. Below 0, it falls."""


@dataclass(frozen=True, slots=True)
class Grown:
    """An operation that took more wall time a unit of work in the last quarter than in the first."""

    operation: str
    before_ns: float
    """A unit, in the first and in the last quarter: sums over sums, so that operations add up to the whole."""
    after_ns: float
    explains: float
    """Of the whole growth: 1 is all of it. More than 1, if something else became faster meanwhile."""
    z: float
    """Of the trend in its time a unit, as a Trend has it."""
    excess_ns: float
    """What it took beyond its pace of the first quarter, over the whole run; warm-up left out."""


@dataclass(frozen=True, slots=True)
class Drift:
    """How the speed changed over the run, warm-up left out."""

    unit: str
    """What is counted: `step`, or `iteration` where no steps were."""
    before_ns: float
    """Wall time a unit, in the first and in the last quarter."""
    after_ns: float
    z: float
    """Of the trend in the wall time a unit, as a Trend has it."""
    steady_fall: float
    """`fall` by the trend's line, which single slow iterations do not move."""
    excess_ns: float
    grown: tuple[Grown, ...]
    """The operations whose time a unit grew, and `unattributed`; the most first."""

    @property
    def fall(self) -> float:
        """Of the start's speed, how much was lost at the end: 0.25 is a quarter. Below 0 it became faster."""
        return 1 - self.before_ns / self.after_ns if self.after_ns > 0 else 0.0


def drift(series: Series) -> Drift | None:
    """None with too few iterations to tell."""
    walls = [_bounded(wall) for wall in series.wall_ns]
    steps = [_bounded(amount) for amount in series.steps[: len(walls)]]
    counted = 2 * sum(amount > 0 for amount in steps) > len(walls)
    iterations = [_bounded(last - first + 1) for first, last in zip(series.first, series.last)]
    units = steps if counted else iterations
    places = [place for place, (wall, unit) in enumerate(zip(walls, units)) if wall > 0 and unit > 0]
    places = places[int(WARM_UP * len(places)) :]
    whole = _pace(walls, units, places)
    if whole is None or whole.before_ns <= 0:
        return None
    growth = whole.after_ns - whole.before_ns
    grown = []
    for operation, values in series.ledger_ns.items():
        own = _pace([_bounded(value) for value in values], units, places)
        if own is not None and operation != RLPROF and own.after_ns > own.before_ns and growth > 0:
            explains = (own.after_ns - own.before_ns) / growth
            grown.append(Grown(operation, own.before_ns, own.after_ns, explains, own.trend.z, own.excess_ns))
    trend = whole.trend
    return Drift(
        unit="step" if counted else "iteration",
        before_ns=whole.before_ns,
        after_ns=whole.after_ns,
        z=trend.z,
        steady_fall=1 - trend.start / trend.end if trend.end > 0 else 0.0,
        excess_ns=whole.excess_ns,
        grown=tuple(sorted(grown, key=lambda item: -item.explains)),
    )


@dataclass(frozen=True, slots=True)
class _Pace:
    """Time a unit."""

    before_ns: float
    after_ns: float
    trend: Trend
    excess_ns: float


def _pace(values: Sequence[float], units: Sequence[float], places: Sequence[int]) -> _Pace | None:
    taken = [values[place] if place < len(values) else 0.0 for place in places]
    done = [units[place] for place in places]
    trend = trend_of(list(map(float, range(len(places)))), [ns / unit for ns, unit in zip(taken, done)])
    if trend is None:
        return None
    quarter = len(places) // 4
    before = sum(taken[:quarter]) / sum(done[:quarter])
    after = sum(taken[-quarter:]) / sum(done[-quarter:])
    return _Pace(before, after, trend, sum(taken) - before * sum(done))


def trend_of(x: Sequence[float], y: Sequence[float]) -> Trend | None:
    """The trend of values in order of x, put together in blocks. None with too few of them."""
    if min(len(x), len(y)) < FEWEST_POINTS:
        return None
    edges = [len(x) * block // BLOCKS for block in range(BLOCKS + 1)]
    middles = [(median(x[a:b]), median(y[a:b])) for a, b in pairwise(edges)]
    pairs = [(right, left) for i, left in enumerate(middles) for right in middles[i + 1 :] if right[0] > left[0]]
    if not pairs:
        return None
    slope = median((right[1] - left[1]) / (right[0] - left[0]) for right, left in pairs)
    level = median(value - slope * place for place, value in middles)
    rising = sum((right[1] > left[1]) - (right[1] < left[1]) for right, left in pairs)
    n = len(middles)
    spread = sqrt(n * (n - 1) * (2 * n + 5) / 18)
    # One pair less in the direction it leans to: the test's usual correction for counting in whole pairs.
    z = (rising - (rising > 0) + (rising < 0)) / spread
    return Trend(slope, level + slope * x[0], level + slope * x[-1], z)


def _bounded(value: float) -> float:
    return float(min(MOST, max(0.0, value)))

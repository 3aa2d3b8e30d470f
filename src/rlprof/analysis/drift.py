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
"""Fraction of the points at the start that is ignored: caches fill, code is compiled, memory is allocated."""

BLOCKS = 12
"""The points are grouped into this many blocks. On a shared machine neighbouring points are alike, and a test that
treats each as independent would see trends everywhere. The median of a block also ignores single slow iterations."""

FEWEST_POINTS = 2 * BLOCKS

MOST = 1e18
"""Larger than any real time or count: facts may come from a file of unknown origin."""


@dataclass(frozen=True, slots=True)
class Trend:
    """A straight line through values in order of time."""

    slope: float
    """Per unit of x: the median of the slopes between all pairs (Theil-Sen)."""
    start: float
    """The value of the line at the first x; `end` is its value at the last x."""
    end: float
    z: float
    """Mann-Kendall: standard deviations of the number of rising pairs from chance. Negative if the values fall."""


@dataclass(frozen=True, slots=True)
class Grown:
    """An operation that took more wall time per unit of work in the last quarter than in the first."""

    operation: str
    before_ns: float
    """Per unit in the first quarter; `after_ns` in the last. Sums over sums, so that operations add up to the whole."""
    after_ns: float
    explains: float
    """Fraction of the whole growth. More than 1 if something else became faster meanwhile."""
    z: float
    """`Trend.z` of its time per unit."""
    excess_ns: float
    """Time beyond its pace of the first quarter, over the whole run without warm-up."""


@dataclass(frozen=True, slots=True)
class Drift:
    """How the speed changed over the run, without warm-up."""

    unit: str
    """`step`, or `iteration` if no steps were counted."""
    before_ns: float
    """Wall time per unit in the first quarter; `after_ns` in the last."""
    after_ns: float
    z: float
    """`Trend.z` of the wall time per unit."""
    steady_fall: float
    """`fall` computed from the trend's line, which single slow iterations do not affect."""
    excess_ns: float
    grown: tuple[Grown, ...]
    """The operations (or `unattributed`) whose time per unit grew, the largest growth first."""

    @property
    def fall(self) -> float:
        """Fraction of the initial speed that was lost at the end: 0.25 is a quarter. Negative if it became faster."""
        return 1 - self.before_ns / self.after_ns if self.after_ns > 0 else 0.0


def drift(series: Series) -> Drift | None:
    """None with too few iterations."""
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
    """The trend of values in order of x, grouped into blocks. None with too few values."""
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
    # One pair less towards zero: the usual continuity correction of this test.
    z = (rising - (rising > 0) + (rising < 0)) / spread
    return Trend(slope, level + slope * x[0], level + slope * x[-1], z)


def _bounded(value: float) -> float:
    return float(min(MOST, max(0.0, value)))

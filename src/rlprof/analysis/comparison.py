"""Is B really faster than A? From pairs of processes that took turns; the pair is the statistical unit.

The estimate of a pair is the log of the ratio of mean times a step: means add up to steps per second, medians do not.
Over pairs there is a t-interval, and a sign-flip permutation test beside it. The verdict is about steps per second;
components are corrected for their number (Holm), and what they contribute sums to the whole difference.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from rlprof.errors import MissingLibraryError

ALPHA = 0.05
MARGIN = 0.02
"""Less is the same, for all practical purposes."""
POWER = 0.8
SAME_WORK = 0.01
"""Steps an iteration that differ by less are equal."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One arm in one pair: means over its iterations."""

    wall_ns: float
    """An iteration."""
    cpu_ns: float
    steps: float
    ledger: Mapping[str, float]
    """By component: ns an iteration. They sum to the wall time, but for what taking turns costs."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Of a figure that says how much faster B is: 0.06 for 6 %. None where too few pairs say nothing about it."""

    estimate: float
    low: float | None
    high: float | None

    @property
    def beyond_zero(self) -> bool:
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


@dataclass(frozen=True, slots=True)
class Component:
    name: str
    a_ns: float
    """A step, or an iteration where nothing counts steps."""
    b_ns: float
    contribution: float
    """Of A's whole time, what B saves here: these sum to the whole saving."""
    speedup: Interval | None
    """None where an arm does not have it."""
    significant: bool
    """After correction for the number of components."""


@dataclass(frozen=True, slots=True)
class Comparison:
    a: str
    b: str
    pairs: int
    per_step: bool
    """Else the figures are of iterations."""
    a_ns: float
    b_ns: float
    speedup: Interval
    """In steps per second."""
    permutation_p: float | None
    cpu: Interval
    """The same in CPU time."""
    least_seen: float | None
    """An effect of this size is found four times out of five with as many pairs."""
    components: tuple[Component, ...]
    """The largest contribution first."""
    work: str | None
    """How the arms' work differs, if it does."""

    @property
    def verdict(self) -> str:
        """`faster`, `slower`, `same` or `unknown`."""
        speedup = self.speedup
        if speedup.low is None or speedup.high is None:
            return "unknown"
        if speedup.beyond_zero:
            return "faster" if speedup.low > 0 else "slower"
        return "same" if speedup.low > -MARGIN and speedup.high < MARGIN else "unknown"


def compare(a: str, b: str, pairs: Sequence[tuple[Measured, Measured]], alpha: float = ALPHA) -> Comparison:
    """`pairs` are of A and B."""
    per_step = all(arm.steps > 0 for pair in pairs for arm in pair)
    scaled = [tuple(_of_a_step(arm) if per_step else arm for arm in pair) for pair in pairs]
    logs = [math.log(one.wall_ns / other.wall_ns) for one, other in scaled]
    low, high = _bounds(logs, alpha)
    return Comparison(
        a=a,
        b=b,
        pairs=len(pairs),
        per_step=per_step,
        a_ns=fmean(one.wall_ns for one, _ in scaled),
        b_ns=fmean(other.wall_ns for _, other in scaled),
        speedup=Interval(math.expm1(fmean(logs)), _expm1(low), _expm1(high)),
        permutation_p=_permutation_p(logs),
        cpu=_interval([math.log(max(1, one.cpu_ns) / max(1, other.cpu_ns)) for one, other in scaled], alpha),
        least_seen=_least_seen(logs, alpha),
        components=_components(scaled, alpha),
        work=_work(pairs),
    )


def _of_a_step(arm: Measured) -> Measured:
    return Measured(
        arm.wall_ns / arm.steps,
        arm.cpu_ns / arm.steps,
        1.0,
        {name: ns / arm.steps for name, ns in arm.ledger.items()},
    )


def _components(pairs: Sequence[tuple[Measured, ...]], alpha: float) -> tuple[Component, ...]:
    names = sorted({name for pair in pairs for arm in pair for name in arm.ledger})
    found, p_values = [], []
    for name in names:
        times = [(one.ledger.get(name, 0.0), other.ledger.get(name, 0.0)) for one, other in pairs]
        saved = [(a - b) / one.wall_ns for (a, b), (one, _) in zip(times, pairs)]
        both = all(a > 0 and b > 0 for a, b in times)
        logs = [math.log(a / b) for a, b in times] if both else []
        p_values.append(_p_value(logs or saved))
        speedup = _interval(logs, alpha) if both else None
        a_ns, b_ns = (fmean(time) for time in zip(*times))
        found.append(Component(name, a_ns, b_ns, fmean(saved), speedup, significant=False))
    significant = _holm(p_values, alpha)
    marked = [
        Component(one.name, one.a_ns, one.b_ns, one.contribution, one.speedup, yes)
        for one, yes in zip(found, significant)
    ]
    return tuple(sorted(marked, key=lambda component: -abs(component.contribution)))


def _holm(p_values: Sequence[float | None], alpha: float) -> list[bool]:
    """Which are below alpha, if all that are tested are to be wrong together as rarely as one alone."""
    known = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    significant = [False] * len(p_values)
    for rank, (p, place) in enumerate(known):
        if p > alpha / (len(known) - rank):
            break
        significant[place] = True
    return significant


def _interval(logs: Sequence[float], alpha: float) -> Interval:
    low, high = _bounds(logs, alpha)
    return Interval(math.expm1(fmean(logs)), _expm1(low), _expm1(high))


def _bounds(values: Sequence[float], alpha: float) -> tuple[float | None, float | None]:
    if len(values) < 2:
        return None, None
    half = _t().ppf(1 - alpha / 2, len(values) - 1) * stdev(values) / math.sqrt(len(values))
    return fmean(values) - half, fmean(values) + half


def _p_value(values: Sequence[float]) -> float | None:
    if len(values) < 2:
        return None
    error = stdev(values) / math.sqrt(len(values))
    if not error:
        return 0.0 if fmean(values) else 1.0
    return float(2 * _t().sf(abs(fmean(values)) / error, len(values) - 1))


def _least_seen(logs: Sequence[float], alpha: float) -> float | None:
    if len(logs) < 2:
        return None
    error = stdev(logs) / math.sqrt(len(logs))
    t = _t()
    return math.expm1((t.ppf(1 - alpha / 2, len(logs) - 1) + t.ppf(POWER, len(logs) - 1)) * error)


def _permutation_p(logs: Sequence[float]) -> float | None:
    """Were A and B the same, each pair's sign would be chance: how often is chance as far from zero? Up to 12 pairs all
    ways are counted; of more, the first 12 alone would be fewer."""
    if not 2 <= len(logs) <= 12:
        return None
    observed = abs(sum(logs)) * (1 - 1e-12)
    ways = 1 << len(logs)
    as_far = sum(
        abs(sum(value if way >> place & 1 else -value for place, value in enumerate(logs))) >= observed
        for way in range(ways)
    )
    return as_far / ways


def _work(pairs: Sequence[tuple[Measured, Measured]]) -> str | None:
    a, b = (fmean(pair[place].steps for pair in pairs) for place in (0, 1))
    if max(a, b) and abs(a - b) / max(a, b) > SAME_WORK:
        return f"{a:,.0f} steps an iteration in A, {b:,.0f} in B"
    return None


def _expm1(value: float | None) -> float | None:
    return None if value is None else math.expm1(value)


def _t() -> Any:
    try:
        from scipy.stats import t  # noqa: PLC0415 - slow to import, and only a comparison needs it
    except ImportError as error:
        raise MissingLibraryError("comparing", "scipy", "compare") from error
    return t

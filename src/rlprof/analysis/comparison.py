"""Is B really faster than A? Computed from pairs of processes that alternate; the pair is the statistical unit.

The estimate of a pair is the log of the ratio of mean times per step: means add up to steps per second, medians do not.
Over the pairs there is a t-interval of the trimmed mean, and a sign-flip permutation test. The verdict is about steps
per second, or about iterations per second. Components are corrected for their number (Holm), and their contributions
sum to the whole difference.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from rlprof.analysis.inference import ALPHA, FEWEST, Interval, interval, least_seen, p_value, permutation_p
from rlprof.analysis.trimmed import kept, trimmed_mean
from rlprof.analysis.work import Measured, in_steps, of_a_step, sizes, work

MARGIN = 0.02
"""A smaller difference counts as the same speed."""
DIFFERENT_WORK = "different work"
BETWEEN = "between iterations"
"""Time between the end of an iteration and the wait for the other arm."""


@dataclass(frozen=True, slots=True)
class MeasuredPair:
    """Both arms of a pair of alternating processes."""

    a: Measured
    b: Measured
    drift: float = 0.0
    """Change of the log ratio from the first iteration to the last, along a straight line."""
    typical: Mapping[str, float] = field(default_factory=dict)
    """By component that every iteration has: the log of the ratio of its times per step in typical iterations. Short
    disturbances of the machine do not affect it."""


@dataclass(frozen=True, slots=True)
class Component:
    name: str
    a_ns: float
    """ns per step, or per iteration if no steps are counted."""
    b_ns: float
    contribution: float
    """What B saves here as a fraction of A's whole time. All contributions sum to the whole saving."""
    speedup: Interval | None
    """Over all iterations, or over typical ones if that is more precise. None if an arm lacks the component."""
    significant: bool
    """After correction for the number of components."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    a: str
    b: str
    logs: tuple[float, ...] = ()
    """Logs of the ratio of A's and B's time, pair by pair. Empty for separately recorded sessions."""
    pairs: int = 0
    """Number of alternating pairs; 0 for separately recorded sessions."""
    sessions: tuple[int, int] | None = None
    """Number of separately recorded sessions on each side."""
    confidence: float
    """Confidence of every interval: 0.97 for 97 %."""
    per_step: bool
    """If False, figures are per iteration."""
    unit_chosen: bool = False
    """The user chose the unit, so there is a verdict about it although the work differs."""
    a_ns: float
    b_ns: float
    speedup: Interval
    """In steps per second, or in iterations per second."""
    permutation_p: float | None = None
    cpu: Interval | None = None
    """In CPU time; None if unknown."""
    least_seen: float | None
    """An effect of this size would be found four times out of five with this many pairs."""
    components: tuple[Component, ...]
    """Largest contribution first."""
    work: str | None
    """How the work of the arms differs, if it does. Then their times alone do not show which is faster."""
    sizes: str | None
    """How the sizes of their iterations differ, if they do. Figures per step account for that."""
    drift: Interval | None = None
    """How B's speed-up changed from the beginning of a pair to its end; None without alternating pairs."""
    changes: tuple[str, ...] = ()
    """What differs between the arms besides their times."""
    interrupted: bool = False
    """Stopped by Ctrl-C before the requested precision was reached."""

    @property
    def steady(self) -> bool:
        """False if there is a trend that matters: a longer run would then give another figure."""
        return self.drift is None or not (self.drift.beyond_zero and abs(self.drift.estimate) > MARGIN)

    @property
    def withheld(self) -> bool:
        """True if the work differs and the user has not chosen what to compare. Then there is no verdict."""
        return self.work is not None and not self.unit_chosen

    @property
    def verdict(self) -> str:
        """`faster`, `slower`, `same`, `unknown` or `different work`."""
        if self.withheld:
            return DIFFERENT_WORK
        speedup = self.speedup
        if speedup.low is None or speedup.high is None:
            return "unknown"
        if speedup.beyond_zero:
            return "faster" if speedup.low > 0 else "slower"
        return "same" if speedup.low > -MARGIN and speedup.high < MARGIN else "unknown"


_Pair = tuple[Measured, ...]
"""A and B, per step if steps are counted."""


def compare(a: str, b: str, pairs: Sequence[MeasuredPair], alpha: float = ALPHA, per: str | None = None) -> Comparison:
    """`a` and `b` describe the arms. `per` is `step` or `iteration` (default: steps if both arms count them)."""
    of_a, of_b = [pair.a for pair in pairs], [pair.b for pair in pairs]
    per_step = in_steps(of_a, of_b, per)
    scaled = [tuple(of_a_step(arm) if per_step else arm for arm in (pair.a, pair.b)) for pair in pairs]
    logs = [math.log(one.wall_ns / other.wall_ns) for one, other in scaled]
    middle = [scaled[place] for place in kept(logs)]
    mean = trimmed_mean(logs) if len(logs) >= FEWEST else None
    return Comparison(
        a=a,
        b=b,
        logs=tuple(logs),
        pairs=len(pairs),
        confidence=1 - alpha,
        per_step=per_step,
        unit_chosen=per is not None,
        a_ns=fmean(one.wall_ns for one, _ in middle),
        b_ns=fmean(other.wall_ns for _, other in middle),
        speedup=interval(logs, alpha),
        permutation_p=permutation_p(logs),
        cpu=interval([math.log(max(1, one.cpu_ns) / max(1, other.cpu_ns)) for one, other in scaled], alpha),
        least_seen=None if mean is None else least_seen(mean.error, mean.freedom, alpha),
        components=_components(scaled, middle, [pair.typical for pair in pairs], alpha),
        work=work(of_a, of_b, per),
        sizes=sizes(of_a, of_b),
        drift=interval([pair.drift for pair in pairs], alpha),
    )


def whole_ledger(arm: Measured) -> dict[str, float]:
    """With the time outside of all components, so that it sums to the wall time."""
    rest = arm.wall_ns - sum(arm.ledger.values())
    return {**arm.ledger, BETWEEN: rest} if abs(rest) > 1e-9 * arm.wall_ns else dict(arm.ledger)


def _components(
    pairs: Sequence[_Pair], middle: Sequence[_Pair], typical: Sequence[Mapping[str, float]], alpha: float
) -> tuple[Component, ...]:
    """Tested over all pairs. Times and savings are taken from the pairs that the trimmed mean keeps."""
    names = sorted({name for pair in pairs for arm in pair for name in whole_ledger(arm)})
    found, p_values = [], []
    for name in names:
        estimates = _estimates(pairs, typical, name) if name != BETWEEN else []
        p_values.append(_either(estimates or [_saved(pairs, name)]) if name != BETWEEN else None)
        # The more precise estimate, chosen by its scatter and not by its value.
        surest = min(estimates, key=lambda logs: trimmed_mean(logs).error if len(logs) > 1 else 0.0, default=None)
        speedup = None if surest is None else interval(surest, alpha)
        a_ns, b_ns = (fmean(time) for time in zip(*_times(middle, name)))
        found.append(Component(name, a_ns, b_ns, fmean(_saved(middle, name)), speedup, significant=False))
    return holm(found, p_values, alpha)


def _estimates(pairs: Sequence[_Pair], typical: Sequence[Mapping[str, float]], name: str) -> list[list[float]]:
    """Pair by pair, over all iterations and over typical ones. Empty if an arm lacks the component."""
    times = _times(pairs, name)
    if not all(a > 0 and b > 0 for a, b in times):
        return []
    of_all = [math.log(a / b) for a, b in times]
    return [of_all, [pair[name] for pair in typical]] if all(name in pair for pair in typical) else [of_all]


def _either(estimates: Sequence[Sequence[float]]) -> float | None:
    """p-value that neither estimate differs from zero. Typical iterations are more precise, but miss rare changes."""
    known = [p for p in map(p_value, estimates) if p is not None]
    return min(1.0, len(known) * min(known)) if known else None


def _times(pairs: Sequence[_Pair], name: str) -> list[tuple[float, float]]:
    return [(whole_ledger(one).get(name, 0.0), whole_ledger(other).get(name, 0.0)) for one, other in pairs]


def _saved(pairs: Sequence[_Pair], name: str) -> list[float]:
    """Savings as a fraction of A's whole time."""
    return [(a - b) / one.wall_ns for (a, b), (one, _) in zip(_times(pairs, name), pairs)]


def holm(found: Sequence[Component], p_values: Sequence[float | None], alpha: float) -> tuple[Component, ...]:
    """Mark the components that differ, with one error rate for all of them together. Largest contribution first."""
    known = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    significant = set()
    for rank, (p, place) in enumerate(known):
        if p > alpha / (len(known) - rank):
            break
        significant.add(place)
    marked = [replace(one, significant=place in significant) for place, one in enumerate(found)]
    return tuple(sorted(marked, key=lambda component: -abs(component.contribution)))

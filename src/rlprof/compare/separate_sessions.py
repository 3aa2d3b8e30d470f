"""Compares sessions that were recorded separately. The difference includes what else the machine did at another hour.

A session is one value, whatever its length, because its iterations share one process and one hour. So several sessions
per side give an interval (Welch's), and a single session per side gives no error rate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev

from rlprof.analysis.comparison import Comparison, Component, holm
from rlprof.analysis.facts import Facts
from rlprof.analysis.inference import Interval, around, chance_of, least_seen
from rlprof.analysis.trimmed import Mean
from rlprof.analysis.work import UPDATE, Measured, in_steps, of_a_step, sizes, work
from rlprof.errors import RlprofError
from rlprof.ledger.catalogue import BESIDE_TRAINING

WARM_UP = 3
"""First iterations that do not count, if there are more."""


def measure_session(facts: Facts, name: str) -> Measured:
    """The mean of the iterations after the warm-up. Raises RlprofError for a session without any."""
    series = facts.series
    first = next((place for place, number in enumerate(series.first) if number > WARM_UP), 0)
    places = range(first if len(series) > first + 1 else 0, len(series))
    iterations = sum(series.last[place] - series.first[place] + 1 for place in places)
    if iterations <= 0:
        raise RlprofError(f"{name} has no iterations, so it cannot be compared.")

    def mean(values: Sequence[int]) -> float:
        return sum(values[place] for place in places) / iterations

    ledger = {name: mean(values) for name, values in series.ledger_ns.items() if name not in BESIDE_TRAINING}
    wall_ns = sum(ledger.values())
    if wall_ns <= 0:  # its logarithm does not exist
        raise RlprofError(f"{name} has no training time in its iterations, so it cannot be compared.")
    return Measured(
        wall_ns=wall_ns,
        cpu_ns=0.0,
        steps=mean(series.steps),
        ledger=ledger,
        episodes=mean(series.episodes),
        updates=mean(series.calls[UPDATE]) if UPDATE in series.calls else 0.0,
        iterations=iterations,
    )


def compare_separate(
    a: str, b: str, of_a: Sequence[Measured], of_b: Sequence[Measured], alpha: float, per: str | None = None
) -> Comparison:
    """`a` and `b` are the names of the sides. `per` is `step` or `iteration`, as in `compare`."""
    per_step = in_steps(of_a, of_b, per)
    scaled = [[of_a_step(one) if per_step else one for one in side] for side in (of_a, of_b)]
    log_a, log_b = ([math.log(one.wall_ns) for one in side] for side in scaled)
    whole = fmean(one.wall_ns for one in scaled[0])
    difference = _difference(log_a, log_b)
    return Comparison(
        a=a,
        b=b,
        sessions=(len(of_a), len(of_b)),
        confidence=1 - alpha,
        per_step=per_step,
        unit_chosen=per is not None,
        a_ns=whole,
        b_ns=fmean(one.wall_ns for one in scaled[1]),
        speedup=_interval(log_a, log_b, alpha),
        least_seen=None if difference is None else least_seen(difference.error, difference.freedom, alpha),
        components=_components(scaled, whole, alpha),
        work=work(of_a, of_b, per),
        sizes=sizes(of_a, of_b),
    )


def _components(sides: Sequence[Sequence[Measured]], whole: float, alpha: float) -> tuple[Component, ...]:
    names = sorted({name for side in sides for one in side for name in one.ledger})
    found, p_values = [], []
    for name in names:
        a, b = ([one.ledger.get(name, 0.0) for one in side] for side in sides)
        both = min(a) > 0 and min(b) > 0
        log_a, log_b = ([math.log(value) for value in side] for side in (a, b)) if both else (a, b)
        difference = _difference(log_a, log_b)
        p_values.append(None if difference is None else chance_of(difference))
        speedup = _interval(log_a, log_b, alpha) if both else None
        found.append(Component(name, fmean(a), fmean(b), (fmean(a) - fmean(b)) / whole, speedup, significant=False))
    return holm(found, p_values, alpha)


def _interval(log_a: Sequence[float], log_b: Sequence[float], alpha: float) -> Interval:
    difference = _difference(log_a, log_b)
    if difference is None:
        return Interval(math.expm1(fmean(log_a) - fmean(log_b)), None, None)
    return around(difference, alpha)


def _difference(a: Sequence[float], b: Sequence[float]) -> Mean | None:
    """Difference of the means, with Welch's error and degrees of freedom; None if a side has a single value."""
    if len(a) < 2 or len(b) < 2:
        return None
    variances = [stdev(side) ** 2 / len(side) for side in (a, b)]
    total = sum(variances)
    below = sum(variance**2 / (len(side) - 1) for variance, side in zip(variances, (a, b)))
    freedom = total**2 / below if below else float(len(a) + len(b) - 2)
    return Mean(fmean(a) - fmean(b), math.sqrt(total), freedom)

"""Sessions that were recorded apart. Weaker than taking turns: what the machine did at another hour is in it.

A session is one value, whatever its length: its iterations share their process and their hour. So with several sessions
a side there is an interval (Welch's), and with one a side no error rate can be given.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from statistics import fmean, stdev

from rlprof.analysis.comparison import (
    UPDATE,
    Comparison,
    Component,
    Interval,
    Measured,
    holm,
    of_a_step,
    t_distribution,
    work,
)
from rlprof.analysis.facts import Facts
from rlprof.errors import RlprofError
from rlprof.ledger.catalogue import BESIDE_TRAINING

WARM_UP = 3
"""Iterations that do not count, where there are enough."""


def measure_session(facts: Facts, name: str) -> Measured:
    """The mean of its iterations, but for the first ones."""
    series = facts.series
    first = next((place for place, number in enumerate(series.first) if number > WARM_UP), 0)
    places = range(first if len(series) > first + 1 else 0, len(series))
    iterations = sum(series.last[place] - series.first[place] + 1 for place in places)
    if not iterations:
        raise RlprofError(f"{name} has no iterations, and cannot be compared")
    ledger = Counter(
        {
            operation: sum(values[place] for place in places) / iterations
            for operation, values in series.ledger_ns.items()
            if operation not in BESIDE_TRAINING
        }
    )
    return Measured(
        wall_ns=sum(ledger.values()),
        cpu_ns=0.0,
        steps=sum(series.steps[place] for place in places) / iterations,
        ledger=ledger,
        episodes=sum(series.episodes[place] for place in places) / iterations,
        updates=sum(series.calls[UPDATE][place] for place in places) / iterations if UPDATE in series.calls else 0.0,
    )


def compare_apart(a: str, b: str, of_a: Sequence[Measured], of_b: Sequence[Measured], alpha: float) -> Comparison:
    """`a` and `b` say what the sides are."""
    per_step = all(one.steps > 0 for one in (*of_a, *of_b))
    scaled = [[of_a_step(one) if per_step else one for one in side] for side in (of_a, of_b)]
    log_a, log_b = ([math.log(one.wall_ns) for one in side] for side in scaled)
    whole = fmean(one.wall_ns for one in scaled[0])
    error, freedom = _welch(log_a, log_b)
    t = t_distribution()
    seen = None if error is None else math.expm1((t.ppf(1 - alpha / 2, freedom) + t.ppf(0.8, freedom)) * error)
    return Comparison(
        a=a,
        b=b,
        logs=(),
        pairs=0,
        sessions=(len(of_a), len(of_b)),
        confidence=1 - alpha,
        per_step=per_step,
        a_ns=whole,
        b_ns=fmean(one.wall_ns for one in scaled[1]),
        speedup=_interval(log_a, log_b, alpha),
        permutation_p=None,
        cpu=None,
        least_seen=seen,
        components=_components(scaled, whole, alpha),
        work=work(of_a, of_b),
        drift=None,
    )


def _components(sides: Sequence[Sequence[Measured]], whole: float, alpha: float) -> tuple[Component, ...]:
    names = sorted({name for side in sides for one in side for name in one.ledger})
    found, p_values = [], []
    for name in names:
        a, b = ([one.ledger.get(name, 0.0) for one in side] for side in sides)
        both = min(a) > 0 and min(b) > 0
        log_a, log_b = ([math.log(value) for value in side] for side in (a, b)) if both else (a, b)
        p_values.append(_p_value(log_a, log_b))
        speedup = _interval(log_a, log_b, alpha) if both else None
        found.append(Component(name, fmean(a), fmean(b), (fmean(a) - fmean(b)) / whole, speedup, significant=False))
    return holm(found, p_values, alpha)


def _interval(log_a: Sequence[float], log_b: Sequence[float], alpha: float) -> Interval:
    estimate = fmean(log_a) - fmean(log_b)
    error, freedom = _welch(log_a, log_b)
    if error is None:
        return Interval(math.expm1(estimate), None, None)
    half = t_distribution().ppf(1 - alpha / 2, freedom) * error
    return Interval(math.expm1(estimate), math.expm1(estimate - half), math.expm1(estimate + half))


def _p_value(a: Sequence[float], b: Sequence[float]) -> float | None:
    error, freedom = _welch(a, b)
    if error is None:
        return None
    return float(2 * t_distribution().sf(abs(fmean(a) - fmean(b)) / error, freedom)) if error else float(a == b)


def _welch(a: Sequence[float], b: Sequence[float]) -> tuple[float | None, float]:
    """The standard error of the difference of means, and its degrees of freedom; None with one value a side."""
    if len(a) < 2 or len(b) < 2:
        return None, 0.0
    variances = [stdev(side) ** 2 / len(side) for side in (a, b)]
    total = sum(variances)
    below = sum(variance**2 / (len(side) - 1) for variance, side in zip(variances, (a, b)))
    return math.sqrt(total), total**2 / below if below else float(len(a) + len(b) - 2)

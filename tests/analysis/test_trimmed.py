"""The trimmed mean against scipy's own, and against what it promises."""

from __future__ import annotations

import math
import random

import pytest
from scipy import stats

from rlprof.analysis.comparison import MeasuredPair, compare
from rlprof.analysis.trimmed import LEAST, kept, trimmed_mean
from rlprof.analysis.work import Measured


def values(count, seed=1, outliers=0.1):
    """Mostly alike, and some of them far off."""
    chance = random.Random(seed)
    return [chance.gauss(0, 0.2 if chance.random() < outliers else 0.02) for _ in range(count)]


@pytest.mark.parametrize("count", [10, 14, 20, 37])
def test_the_mean_equals_that_of_scipy(count):
    some, others = values(count), values(count, seed=2)
    one, other = trimmed_mean(some), trimmed_mean(others)
    assert one.value == pytest.approx(stats.trim_mean(some, 0.2))
    yuen = stats.ttest_ind(some, others, equal_var=False, trim=0.2)
    assert (one.value - other.value) / math.hypot(one.error, other.error) == pytest.approx(yuen.statistic)


def test_with_few_values_none_is_left_out():
    some = values(LEAST - 1)
    found = trimmed_mean(some)
    assert (found.value, found.error) == pytest.approx((sum(some) / len(some), stats.sem(some)))
    assert found.freedom == len(some) - 1
    assert kept(some) == list(range(len(some)))


def pairs_of(logs):
    """Pairs that differ only in `x`."""
    return [
        MeasuredPair(
            Measured(1000 * math.exp(log), 1.0, 1, {"x": 1000 * math.exp(log) - 500, "y": 500}),
            Measured(1000, 1.0, 1, {"x": 500, "y": 500}),
        )
        for log in logs
    ]


def test_one_disturbed_pair_does_not_affect_the_mean():
    calm = [0.1 + log / 10 for log in values(20, outliers=0.0)]
    found, moved = compare("A", "B", pairs_of(calm)), compare("A", "B", pairs_of([*calm[:-1], 3.0]))
    assert moved.speedup.estimate == pytest.approx(found.speedup.estimate, abs=0.001)
    assert moved.a_ns == pytest.approx(found.a_ns, rel=0.001)
    saved = sum(component.contribution for component in moved.components)
    assert saved == pytest.approx(1 - moved.b_ns / moved.a_ns, abs=0.001)


@pytest.mark.parametrize("count", [10, 20])
def test_equal_trainings_are_called_different_no_more_often_and_intervals_are_narrower(count):
    trials, alpha, wrong, narrower = 400, 0.05, 0, 0.0
    for seed in range(trials):
        some = values(count, seed)
        found = trimmed_mean(some)
        limit = stats.t.ppf(1 - alpha / 2, found.freedom) * found.error
        wrong += abs(found.value) > limit
        narrower += limit / (stats.t.ppf(1 - alpha / 2, count - 1) * stats.sem(some)) / trials
    assert wrong / trials < alpha + 3 * math.sqrt(alpha * (1 - alpha) / trials)
    assert narrower < 0.85

"""The self-test of a comparison against noise whose rate is known."""

from __future__ import annotations

import random

import pytest

from rlprof.compare.noise import self_test
from rlprof.compare.noise_text import render
from rlprof.render.layout import plain


def noise(pairs, spread=0.05, seed=1):
    chance = random.Random(seed)
    return [chance.gauss(0, spread) for _ in range(pairs)]


@pytest.mark.long
def test_well_behaved_noise_keeps_what_is_promised():
    """On average: of twenty pairs alone, it is known roughly."""
    found = [self_test("run a.py", noise(20, seed=seed), alpha=0.03).false_positives for seed in range(8)]
    assert sum(found) / len(found) == pytest.approx(0.03, abs=0.01)


@pytest.mark.long
def test_the_smallest_effect_falls_with_the_pairs_and_with_the_noise():
    loud, quiet = (dict(self_test("run a.py", noise(20, spread), alpha=0.03).smallest) for spread in (0.1, 0.01))
    assert loud[5] > loud[10] > loud[40]
    assert loud[10] > 5 * quiet[10]


def test_few_pairs_give_no_rate():
    found = self_test("run a.py", noise(4), alpha=0.03)
    assert found.false_positives is None
    assert "too few to say" in plain(lambda console: render(found, console), 80)

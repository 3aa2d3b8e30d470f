"""The noise of a machine, computed from pairs whose noise is known."""

from __future__ import annotations

import random

import pytest

from rlprof.compare.noise import noise_of
from rlprof.compare.noise_text import render
from rlprof.render.layout import plain


def noise(pairs, spread=0.05, seed=1):
    chance = random.Random(seed)
    return [chance.gauss(0, spread) for _ in range(pairs)]


@pytest.mark.long
def test_well_behaved_noise_keeps_the_promised_error_rate():
    """On average over eight sets: twenty pairs alone give only a rough rate."""
    found = [noise_of("run a.py", noise(20, seed=seed), alpha=0.03).false_positives for seed in range(8)]
    assert sum(found) / len(found) == pytest.approx(0.03, abs=0.01)


@pytest.mark.long
def test_the_smallest_effect_falls_with_the_pairs_and_with_the_noise():
    loud, quiet = (dict(noise_of("run a.py", noise(20, spread), alpha=0.03).smallest) for spread in (0.1, 0.01))
    assert loud[5] > loud[10] > loud[40]
    assert loud[10] > 5 * quiet[10]


def test_few_pairs_give_no_rate():
    found = noise_of("run a.py", noise(4), alpha=0.03)
    assert found.false_positives is None
    assert "too few to know" in plain(lambda console: render(found, console), 80)

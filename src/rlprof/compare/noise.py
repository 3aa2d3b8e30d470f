"""How good is a comparison on this machine? A against A: whatever differs is noise, and the noise is what counts."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import stdev

from rlprof.analysis.inference import least_seen, t_distribution
from rlprof.analysis.trimmed import cut_of, trimmed_mean

TRIALS = 4000
ENOUGH = 8
"""Pairs: of fewer, there are too few ways they could have come out."""
SIZES = (5, 10, 20, 40)
"""Pairs of processes for which the smallest effect is told."""


@dataclass(frozen=True, slots=True)
class SelfTest:
    command: str
    pairs: int
    alpha: float
    """What is promised."""
    difference: float
    """Of A and A, over all pairs: 0.01 for 1 %."""
    spread: float
    """Standard deviation of the pairs' differences."""
    false_positives: float | None
    """Of comparisons of as many pairs, which share would call A and A different; None of too few pairs."""
    smallest: tuple[tuple[int, float], ...]
    """By the number of pairs, the effect that is found four times out of five."""


def self_test(command: str, logs: Sequence[float], alpha: float) -> SelfTest:
    """From the log of each pair's ratio."""
    spread = stdev(logs)
    scatter = trimmed_mean(logs).error * math.sqrt(len(logs))
    return SelfTest(
        command=command,
        pairs=len(logs),
        alpha=alpha,
        difference=math.expm1(trimmed_mean(logs).value),
        spread=spread,
        false_positives=_false_positives(logs, alpha) if len(logs) >= ENOUGH else None,
        smallest=tuple(
            (size, least_seen(scatter / math.sqrt(size), size - 2 * cut_of(size) - 1, alpha)) for size in SIZES
        ),
    )


def _false_positives(logs: Sequence[float], alpha: float) -> float:
    """A and A are the same, so each pair could as well have come out the other way round: of comparisons of such pairs
    that could have been, which are significant?"""
    chance = random.Random(1)
    limit = t_distribution().ppf(1 - alpha / 2, trimmed_mean(logs).freedom)
    wrong = 0
    for _ in range(TRIALS):
        drawn = trimmed_mean([value * chance.choice((-1, 1)) for value in chance.choices(logs, k=len(logs))])
        wrong += bool(drawn.error) and abs(drawn.value) / drawn.error > limit
    return wrong / TRIALS

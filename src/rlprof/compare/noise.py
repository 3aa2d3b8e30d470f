"""How noisy is a comparison on this machine? Compares A with A, where every difference is noise."""

from __future__ import annotations

import math
import random
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import stdev

from rlprof.analysis.comparison import Comparison
from rlprof.analysis.inference import least_seen, t_distribution
from rlprof.analysis.trimmed import cut_of, trimmed_mean
from rlprof.compare.paired import ALPHA_PER_LOOK, Plan
from rlprof.errors import RlprofError
from rlprof.session.secrets import mask_line

SMALL_PPO = f"run {shlex.quote(str(Path(__file__).with_name('small_ppo.py')))}"
"""The training that is compared with itself (default)."""
PAIRS = 20
TRIALS = 4000
ENOUGH = 8
"""Pairs: fewer could have come out in too few ways to count false positives."""
SIZES = (5, 10, 20, 40)
"""Numbers of pairs for which the smallest effect is reported."""


@dataclass(frozen=True, slots=True)
class Noise:
    command: str
    pairs: int
    alpha: float
    """The promised error rate."""
    difference: float
    """Difference between A and A over all pairs: 0.01 for 1 %."""
    spread: float
    """Standard deviation of the pairs' differences."""
    false_positives: float | None
    """Share of comparisons with as many pairs that would call A and A different; None for too few pairs."""
    smallest: tuple[tuple[int, float], ...]
    """Number of pairs, and the effect that so many pairs find four times out of five."""


def measure_noise(plan: Plan, run: Callable[[Plan], Comparison]) -> Noise:
    """Compare plan.a with itself. Every pair counts, however narrow the interval is."""
    logs = run(plan).logs
    if len(logs) < 2:
        raise RlprofError("A single pair cannot show the noise of this machine. Raise --max-time.")
    return noise_of(mask_line(plan.a), logs, ALPHA_PER_LOOK)


def noise_of(command: str, logs: Sequence[float], alpha: float) -> Noise:
    """From the logarithm of each pair's ratio."""
    scatter = trimmed_mean(logs).error * math.sqrt(len(logs))
    return Noise(
        command=command,
        pairs=len(logs),
        alpha=alpha,
        difference=math.expm1(trimmed_mean(logs).value),
        spread=stdev(logs),
        false_positives=_false_positives(logs, alpha) if len(logs) >= ENOUGH else None,
        smallest=tuple((n, least_seen(scatter / math.sqrt(n), n - 2 * cut_of(n) - 1, alpha)) for n in SIZES),
    )


def _false_positives(logs: Sequence[float], alpha: float) -> float:
    """Draws pairs, each in either order, because A and A are the same. Returns the share of significant results."""
    chance = random.Random(1)
    limit = t_distribution().ppf(1 - alpha / 2, trimmed_mean(logs).freedom)
    wrong = 0
    for _ in range(TRIALS):
        drawn = trimmed_mean([value * chance.choice((-1, 1)) for value in chance.choices(logs, k=len(logs))])
        wrong += bool(drawn.error) and abs(drawn.value) / drawn.error > limit
    return wrong / TRIALS

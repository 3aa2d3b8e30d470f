"""Measure each part of a training in isolation: how many seconds it needs per environment step."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from time import perf_counter

ROUNDS = 7
ROUND_SECONDS = 0.25
"""Time for each part in each round. The order is random, so that a busy machine affects all parts alike."""


def measure_isolated(
    parts: Mapping[str, Callable[[], int]], rounds: int = ROUNDS, seconds: float = ROUND_SECONDS
) -> dict[str, list[float]]:
    """Seconds per environment step for each part, one value per round. A warm-up round is not included."""
    chance = random.Random(1)
    measured: dict[str, list[float]] = {name: [] for name in parts}
    for number in range(rounds + 1):
        for name in chance.sample(list(parts), len(parts)):
            steps, began = 0, perf_counter()
            while perf_counter() - began < seconds or not steps:
                steps += parts[name]()
            if number:
                measured[name].append((perf_counter() - began) / steps)
    return measured

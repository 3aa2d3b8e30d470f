"""The parts of a training, each alone: how many environment steps a second it could serve."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from time import perf_counter

ROUNDS = 7
ROUND_SECONDS = 0.25
"""Of each part in each round. Parts take turns in random order, so that what the machine does meanwhile meets all."""


def measure_alone(
    parts: Mapping[str, Callable[[], int]], rounds: int = ROUNDS, seconds: float = ROUND_SECONDS
) -> dict[str, list[float]]:
    """Seconds an environment step of each part, one figure a round; a first round to warm up is not among them."""
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

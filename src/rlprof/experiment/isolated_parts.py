"""The parts of a training, each run in isolation: how many environment steps per second it could serve."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from time import perf_counter

ROUNDS = 7
ROUND_SECONDS = 0.25
"""Time per part and round. Parts run in random order, so that changes in the machine's speed affect all alike."""


def measure_isolated(
    parts: Mapping[str, Callable[[], int]], rounds: int = ROUNDS, seconds: float = ROUND_SECONDS
) -> dict[str, list[float]]:
    """Seconds per environment step for each part, one figure per round. A first round warms up and is left out."""
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

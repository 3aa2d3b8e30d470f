"""The terms of the reward, with a table of distances."""

from __future__ import annotations

import math

GRID = 250


def distances() -> dict[tuple[int, int], float]:
    return {(x, y): math.hypot(x / GRID, y / GRID) for x in range(GRID) for y in range(GRID)}


DISTANCES = distances()


def bonus(position: float, angle: float) -> float:
    x, y = (min(GRID - 1, int(GRID * abs(value) / 3)) for value in (position, angle))
    return 1.0 - DISTANCES[x, y]

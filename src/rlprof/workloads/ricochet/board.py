"""The rules of Ricochet Robots: boards with walls, and robots that slide until something stops them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from rlprof.errors import RlprofError
from rlprof.workloads.ricochet.settings import BoardSettings

UP, RIGHT, DOWN, LEFT = range(4)
DIRECTIONS = 4

Wall = tuple[int, int]
"""A cell, and the side of the cell where the wall is: RIGHT or DOWN."""

ATTEMPTS = 1000
"""Attempts to draw a level in which the first robot can move."""


class Board:
    """A board, which never changes. Cells are numbered row by row."""

    def __init__(self, size: int, walls: Iterable[Wall] = ()) -> None:
        self.size = size
        self.walls = tuple(sorted(walls))
        self._delta = (-size, 1, size, -1)
        sides = range(size)
        blocked = {(cell, UP) for cell in sides} | {(size * (size - 1) + cell, DOWN) for cell in sides}
        blocked |= {(size * row, LEFT) for row in sides} | {(size * row + size - 1, RIGHT) for row in sides}
        for cell, side in self.walls:
            blocked |= {(cell, side), (cell + self._delta[side], (side + 2) % DIRECTIONS)}
        self.blocked = frozenset(blocked)
        """Every cell and side with a wall."""

    def slide(self, cell: int, direction: int, others: Collection[int]) -> int:
        """The cell where a moving robot stops: before a wall, the edge, or another robot."""
        while (cell, direction) not in self.blocked and cell + self._delta[direction] not in others:
            cell += self._delta[direction]
        return cell

    def stops(self, robots: Sequence[int], moves: int) -> list[int]:
        """Other cells where the first robot can stop within so many moves, if the other robots stay."""
        others = robots[1:]
        found = edge = {robots[0]}
        for _ in range(moves):
            edge = {self.slide(cell, direction, others) for cell in edge for direction in range(DIRECTIONS)} - found
            found = found | edge
        return sorted(found - {robots[0]})


@dataclass(frozen=True)
class Level:
    """The start of an episode."""

    board: Board
    robots: tuple[int, ...]
    """The cell of each robot."""
    target: int
    """The cell on which the first robot has to stop."""


def make_levels(settings: BoardSettings, chance: np.random.Generator) -> list[Level]:
    """Draw random levels that can be solved."""
    size = settings.size
    places = [(row * size + column, RIGHT) for row in range(size) for column in range(size - 1)]
    places += [(row * size + column, DOWN) for row in range(size - 1) for column in range(size)]
    for what, most in (("walls", len(places)), ("robots", size**2 - 1)):
        if getattr(settings, what) > most:
            raise RlprofError(
                f"board.{what}={getattr(settings, what)}: a board of {size} x {size} has room for {most}; "
                "use fewer, or a larger board.size"
            )
    return [_make_level(settings, places, chance) for _ in range(settings.levels)]


def _make_level(settings: BoardSettings, places: Sequence[Wall], chance: np.random.Generator) -> Level:
    for _ in range(ATTEMPTS):
        chosen = chance.choice(len(places), settings.walls, replace=False)
        board = Board(settings.size, (places[index] for index in chosen))
        robots = tuple(int(cell) for cell in chance.choice(settings.size**2, settings.robots, replace=False))
        if stops := board.stops(robots, settings.moves):
            return Level(board, robots, stops[chance.integers(len(stops))])
    raise RlprofError(
        f"board.walls={settings.walls}, board.robots={settings.robots}: the first robot cannot move; use fewer"
    )

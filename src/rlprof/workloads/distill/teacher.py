"""The teacher: a script that chooses an action from an observation, one agent at a time, in plain Python."""

from __future__ import annotations

from collections import deque

from rlprof.workloads.distill import tokens
from rlprof.workloads.distill.tokens import HOME_COLUMN, HOME_ROW, LOAD, MOVES, RADIUS, SIDE, STAY, Grid

Cell = tuple[int, int]
"""Row and column in the view."""

CENTRE: Cell = (RADIUS, RADIUS)
_MOVES = {action: (int(row), int(column)) for action, (row, column) in enumerate(MOVES) if action != STAY}


class View:
    def __init__(self, observation: Grid) -> None:
        self.own: dict[int, int] = {}
        self.objects: dict[Cell, tuple[int, int]] = {}
        for location, feature, value in observation.tolist():
            if location == tokens.NOTHING:
                break
            if feature in (LOAD, HOME_ROW, HOME_COLUMN):
                self.own[feature] = value
            else:
                self.objects[location >> 4, location & 15] = (feature, value)

    def goals(self) -> dict[Cell, int]:
        """The goals with their remaining rest: the hub for an agent with a load, else the extractors."""
        wanted = tokens.HUB if self.own[LOAD] else tokens.EXTRACTOR
        return {cell: value for cell, (feature, value) in self.objects.items() if feature == wanted}

    def rivals(self) -> list[Cell]:
        """Other agents that also want an ore. None if this agent has a load."""
        return [] if self.own[LOAD] else [cell for cell, found in self.objects.items() if found == (tokens.AGENT, 0)]

    def is_free(self, cell: Cell) -> bool:
        return cell not in self.objects and 0 <= cell[0] < SIDE and 0 <= cell[1] < SIDE


def choose(observation: Grid) -> int:
    """One agent's action: a step on a shortest path to the goal that serves it first, or to the hub if it sees none.

    An extractor that a rival reaches sooner is left to the rival if there is another one.
    """
    view = View(observation)
    rivals = view.rivals()
    options = []
    for goal, rest in view.goals().items():
        distances = _distances(view, goal)
        if CENTRE in distances:
            mine = distances[CENTRE]
            ways = [_way(distances, rival) for rival in rivals]
            options.append((any(way < mine for way in ways), max(mine, rest), mine, goal, distances))
    if not options:
        return _homewards(view)
    *_, distances = min(options, key=lambda option: option[:4])
    return next(
        action for action, move in _MOVES.items() if distances.get(_beside(CENTRE, move)) == distances[CENTRE] - 1
    )


def _distances(view: View, goal: Cell) -> dict[Cell, int]:
    """Distance to a goal, for the free cells that have a path to it."""
    distances = {goal: 0}
    reached = deque([goal])
    while reached:
        cell = reached.popleft()
        for move in _MOVES.values():
            beside = _beside(cell, move)
            if beside not in distances and view.is_free(beside):
                distances[beside] = distances[cell] + 1
                reached.append(beside)
    return distances


def _way(distances: dict[Cell, int], rival: Cell) -> float:
    return min(distances.get(_beside(rival, move), float("inf")) for move in _MOVES.values()) + 1


def _homewards(view: View) -> int:
    """North or south first. West or east if that is blocked or not needed."""
    for wanted in ((view.own[HOME_ROW] - 1, 0), (0, view.own[HOME_COLUMN] - 1)):
        for action, move in _MOVES.items():
            if move == wanted and view.is_free(_beside(CENTRE, move)):
                return action
    return STAY


def _beside(cell: Cell, move: Cell) -> Cell:
    return cell[0] + move[0], cell[1] + move[1]

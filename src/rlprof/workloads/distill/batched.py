"""The teacher for all agents at once: the actions of `teacher.choose`, computed on arrays.

A set of cells is stored as the rows of a view, each a number whose bits are the columns. Shifting them follows all
paths at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rlprof.workloads.distill import tokens
from rlprof.workloads.distill.tokens import MOVES, RADIUS, SIDE, Grid, Places

Cells = NDArray[np.uint16]
"""Sets of cells [n, SIDE]."""

_WHOLE_ROW = np.uint16((1 << SIDE) - 1)
_ROWS, _COLUMNS = (MOVES[1:] + RADIUS).T
"""The cell next to the agent, by action."""
_ONE = np.uint16(1)
_NEVER = 1 << 20
"""A distance longer than any path."""


def choose_all(observations: Grid) -> Places:
    """The actions [n] for observations [n, TOKENS, 3]."""
    own, at, feature, value = _read(observations)
    agent, row, column = at
    free = ~_sets(len(observations), at) & _WHOLE_ROW
    actions = _homewards(free, own[:, 1], own[:, 2])
    loaded = own[:, 0] == 1
    rival = (feature == tokens.AGENT) & (value == 0) & ~loaded[agent]
    rivals = _sets(len(observations), (agent[rival], row[rival], column[rival]))
    goal = feature == np.where(loaded, tokens.HUB, tokens.EXTRACTOR)[agent]
    if goal.any():
        agent, row, column, rest = agent[goal], row[goal], column[goal], value[goal].astype(np.int64)
        goals = _sets(len(agent), (np.arange(len(agent)), row, column))
        mine, theirs, first = _ways(goals, free[agent], rivals[agent])
        # The order in which `teacher.choose` compares goals, as one number each.
        order = (((theirs < mine) * 256 + np.maximum(mine, rest)) * 256 + mine) * 256 + row * 16 + column
        order[mine == _NEVER] = np.iinfo(np.int64).max
        best = np.full(len(observations), np.iinfo(np.int64).max)
        np.minimum.at(best, agent, order)
        chosen = (order == best[agent]) & (mine != _NEVER)
        actions[agent[chosen]] = first[chosen]
    return actions


def _read(observations: Grid) -> tuple[Grid, tuple[Places, Places, Places], Grid, Grid]:
    """The agents' own states [n, 3] in the order of their features, and the objects: where, what, and their values."""
    length = int((observations[:, :, 0] != tokens.NOTHING).sum(axis=-1).max(initial=0))  # NOTHING comes last
    location, feature, value = observations[:, :length].transpose(2, 0, 1)
    is_own = (feature >= tokens.LOAD) & (feature <= tokens.HOME_COLUMN)
    own = np.zeros((len(observations), 3), np.uint8)
    own[np.nonzero(is_own)[0], feature[is_own] - tokens.LOAD] = value[is_own]
    there = ~is_own & (location != tokens.NOTHING)
    where = location[there].astype(np.int64)
    return own, (np.nonzero(there)[0], where >> 4, where & 15), feature[there], value[there]


def _sets(count: int, at: tuple[Places, Places, Places]) -> Cells:
    number, row, column = at
    sets = np.zeros((count, SIDE), np.uint16)
    np.bitwise_or.at(sets, (number, row), (1 << column).astype(np.uint16))
    return sets


def _has(cells: Cells, row: Places | int, column: Places | int) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = (cells[:, row] >> np.asarray(column, np.uint16)) & 1 == 1
    return found


def _ways(goals: Cells, free: Cells, rivals: Cells) -> tuple[Places, Places, Places]:
    """Length of the shortest path to each goal, length of the nearest rival's path, and the first action on the path.

    The search starts from the goals and reaches all cells of one distance at a time.
    """
    mine = np.full(len(goals), _NEVER)
    theirs = np.full(len(goals), _NEVER)
    first = np.zeros(len(goals), np.int64)
    reached = goals
    distance = 0
    while True:
        distance += 1
        beside: Cells = reached | reached << _ONE | reached >> _ONE
        beside[:, 1:] |= reached[:, :-1]
        beside[:, :-1] |= reached[:, 1:]
        theirs[(theirs == _NEVER) & (beside & rivals).any(axis=-1)] = distance
        grown: Cells = beside & free | reached
        arrived = (mine == _NEVER) & _has(grown, RADIUS, RADIUS)
        mine[arrived] = distance
        first[arrived] = _has(reached[arrived], _ROWS, _COLUMNS).argmax(axis=-1) + 1
        # It only matters whether a rival's path is the shorter one.
        if (mine != _NEVER).all() or (grown == reached).all():
            return mine, theirs, first
        reached = grown


def _homewards(free: Cells, home_row: Grid, home_column: Grid) -> Places:
    """North or south first. West or east if that is blocked or not needed."""
    row, column = home_row.astype(np.int64) - 1, home_column.astype(np.int64) - 1
    on_row = (free[np.arange(len(free)), RADIUS + row] >> np.uint16(RADIUS)) & 1
    on_column = (free[:, RADIUS] >> (RADIUS + column).astype(np.uint16)) & 1
    return np.select(
        [(row != 0) & (on_row == 1), (column != 0) & (on_column == 1)], [(row + 3) // 2, (column + 7) // 2], tokens.STAY
    )

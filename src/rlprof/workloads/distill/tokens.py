"""Observations: tokens of location, feature and value. An agent's own state comes first, then its surroundings, the
nearest first."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Grid = NDArray[np.uint8]
Places = NDArray[np.int64]

TOKENS = 200
"""Tokens per observation. Unused ones are NOTHING in all three parts."""
NOTHING = 255

RADIUS = 5
"""How far an agent sees in each direction."""
SIDE = 2 * RADIUS + 1
HERE = RADIUS << 4 | RADIUS
"""The agent's own location. A location is a row and a column of the view, four bits each."""

EMPTY, WALL, AGENT, EXTRACTOR, HUB, LOAD, HOME_ROW, HOME_COLUMN = range(8)
"""Features. The first five are what a cell may hold: the value of an extractor is how long it still rests, that of an
agent its load. The others are an agent's own state: its load, and where its hub lies (0 to the north or west, 1 level
with it, 2 to the south or east)."""
FEATURES = 8
OWN = 3
"""Tokens of an agent's own state, in the order of their features."""

STAY, NORTH, SOUTH, WEST, EAST = range(5)
MOVES = np.array([(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)])
"""Change of row and column, by action."""
ACTIONS = len(MOVES)

_rows, _columns = np.divmod(np.arange(SIDE * SIDE), SIDE)
_order = np.argsort(np.maximum(abs(_rows - RADIUS), abs(_columns - RADIUS)), kind="stable")[1:]
_ROWS, _COLUMNS = _rows[_order], _columns[_order]
_LOCATIONS = (_ROWS << 4 | _COLUMNS).astype(np.uint8)


def observe(cells: Grid, values: Grid, positions: Places, load: Grid, home: Places) -> Grid:
    """The observations [envs, agents, TOKENS, 3] of agents at `positions` [envs, agents, 2].

    The grids have a margin of RADIUS around where agents can be. `home` is the hub's position.
    """
    envs, agents, _ = positions.shape
    world = np.arange(envs)[:, None, None]
    rows = positions[:, :, :1] + (_ROWS - RADIUS)
    columns = positions[:, :, 1:] + (_COLUMNS - RADIUS)
    features = cells[world, rows, columns]
    seen = features != EMPTY
    places = np.cumsum(seen, axis=-1)[seen] + (OWN - 1)
    env, agent, cell = np.nonzero(seen)
    tokens = np.full((envs, agents, TOKENS, 3), NOTHING, np.uint8)
    tokens[env, agent, places, 0] = _LOCATIONS[cell]
    tokens[env, agent, places, 1] = features[seen]
    tokens[env, agent, places, 2] = values[world, rows, columns][seen]
    tokens[:, :, :OWN, 0] = HERE
    tokens[:, :, :OWN, 1] = LOAD, HOME_ROW, HOME_COLUMN
    tokens[:, :, 0, 2] = load
    tokens[:, :, 1:OWN, 2] = np.sign(home - positions) + 1
    return tokens

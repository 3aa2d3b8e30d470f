"""The grid worlds, all stepped together: agents take ore from extractors and deliver it to a hub."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlprof.errors import RlprofError
from rlprof.workloads.distill.tokens import AGENT, EMPTY, EXTRACTOR, HUB, MOVES, RADIUS, WALL, Grid, Places, observe

TAKEN, DELIVERED = 0.2, 1.0
"""Rewards."""


@dataclass(frozen=True)
class Mission:
    size: int
    """Side of the square, including walls. The hub is in the middle."""
    extractors: int
    nearest: int
    farthest: int
    """Distance of the extractors from the hub, in rows or columns. Agents begin no farther away."""
    walls: float
    """Fraction of the other cells that are walls."""
    rest: int
    """Steps that an extractor rests after each ore."""

    @property
    def room(self) -> int:
        """Number of agents that always have room."""
        return (2 * self.farthest + 1) ** 2 // 2


MISSIONS = {
    "extractor_hub_14": Mission(size=14, extractors=4, nearest=2, farthest=4, walls=0.0, rest=6),
    "extractor_hub_30": Mission(size=30, extractors=6, nearest=3, farthest=5, walls=0.06, rest=8),
    "extractor_hub_50": Mission(size=50, extractors=10, nearest=5, farthest=9, walls=0.1, rest=12),
}


class Worlds:
    """`envs` worlds of one mission. Each reset generates a world again, with the world's own random generator.

    An agent without a load that moves into a rested extractor takes an ore. An agent that moves into the hub delivers
    its ore. Agents move one after the other, and neither into walls nor into each other.
    """

    def __init__(self, mission: str, envs: int, agents: int, seed: tuple[int, int]) -> None:
        self.mission = MISSIONS[mission]
        if agents > self.mission.room:
            raise RlprofError(
                f"agents={agents}: {mission} has room for {self.mission.room}; use a larger mission or fewer agents"
            )
        side = self.mission.size + 2 * RADIUS
        self.home = np.array([RADIUS + self.mission.size // 2] * 2)
        self.cells: Grid = np.zeros((envs, side, side), np.uint8)
        self.values: Grid = np.zeros((envs, side, side), np.uint8)
        """Load of agents, remaining rest of extractors."""
        self.positions: Places = np.zeros((envs, agents, 2), np.int64)
        self.load: Grid = np.zeros((envs, agents), np.uint8)
        self._extractors: Places = np.zeros((envs, self.mission.extractors, 2), np.int64)
        self._env = np.arange(envs)
        self._random = [np.random.default_rng([*seed, env]) for env in range(envs)]
        self.reset(self._env)

    def reset(self, envs: Places) -> None:
        for env in envs:
            self._draw(env)

    def observe(self) -> Grid:
        return observe(self.cells, self.values, self.positions, self.load, self.home)

    def step(self, actions: Places) -> NDArray[np.float32]:
        """Take the actions [envs, agents]. Returns the rewards [envs, agents]."""
        at = self._at(self._extractors)
        self.values[at] -= self.values[at] > 0
        rewards = np.zeros(actions.shape, np.float32)
        env = self._env
        for agent in range(actions.shape[1]):
            row, column = self.positions[:, agent].T
            to_row, to_column = (self.positions[:, agent] + MOVES[actions[:, agent]]).T
            found, load = self.cells[env, to_row, to_column], self.load[:, agent]
            takes = (found == EXTRACTOR) & (self.values[env, to_row, to_column] == 0) & (load == 0)
            delivers = (found == HUB) & (load == 1)
            moves = found == EMPTY
            self.values[env[takes], to_row[takes], to_column[takes]] = self.mission.rest
            load[takes], load[delivers] = 1, 0
            rewards[:, agent] = TAKEN * takes + DELIVERED * delivers
            self.cells[env[moves], row[moves], column[moves]] = EMPTY
            self.values[env[moves], row[moves], column[moves]] = 0
            self.positions[moves, agent] = np.stack((to_row, to_column), -1)[moves]
            self.cells[env[moves], to_row[moves], to_column[moves]] = AGENT
            self.values[self._at(self.positions[:, agent : agent + 1])] = load[:, None]
        return rewards

    def _at(self, places: Places) -> tuple[NDArray[np.int64], ...]:
        """Index of the grids for the places [envs, n, 2]."""
        return self._env[:, None], places[..., 0], places[..., 1]

    def _draw(self, env: int) -> None:
        mission, random = self.mission, self._random[env]
        cells = self.cells[env]
        cells[:] = EMPTY
        self.values[env] = 0
        inside = slice(RADIUS, RADIUS + mission.size)
        cells[inside, inside] = WALL
        within = slice(RADIUS + 1, RADIUS + mission.size - 1)
        cells[within, within] = np.where(random.random((mission.size - 2,) * 2) < mission.walls, WALL, EMPTY)
        away = np.abs(np.indices(cells.shape) - self.home[:, None, None]).max(axis=0)
        ring = np.argwhere((away >= mission.nearest) & (away <= mission.farthest))
        self._extractors[env] = random.choice(ring, mission.extractors, replace=False)
        places = np.concatenate((self._extractors[env], self.home[None]))
        for move in MOVES:  # a wall next to them might enclose them
            cells[tuple((places + move).T)] = EMPTY
        cells[tuple(self._extractors[env].T)] = EXTRACTOR
        cells[tuple(self.home)] = HUB
        free = np.argwhere((cells == EMPTY) & (away <= mission.farthest))
        self.positions[env] = random.choice(free, self.positions.shape[1], replace=False)
        self.load[env] = 0
        cells[tuple(self.positions[env].T)] = AGENT

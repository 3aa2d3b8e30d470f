"""Ricochet Robots as a gymnasium environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rlprof.workloads.ricochet.board import DIRECTIONS, RIGHT, Board, Level
from rlprof.workloads.ricochet.drawing import Drawing
from rlprof.workloads.ricochet.settings import RicochetSettings

SOLVED, MOVE = 1.0, -0.01
"""Rewards for the move that brings the first robot onto the target, and for any other move."""

Observation = NDArray[Any]


class Ricochet(gymnasium.Env[Observation, Any]):
    """An action is a robot and a direction: 4 x robot + direction."""

    def __init__(self, settings: RicochetSettings, levels: Sequence[Level]) -> None:
        self._settings = settings
        self._levels = levels
        size, robots = settings.board.size, settings.board.robots
        self._drawing = Drawing(size, settings.image, settings.cached_rendering)
        self.action_space = spaces.Discrete(DIRECTIONS * robots)
        if settings.obs_mode == "rgb_image":
            self.observation_space = spaces.Box(0, 255, (3, settings.image.size, settings.image.size), np.uint8)
        else:
            self.observation_space = spaces.Box(0, 1, (robots + 3, size, size), np.float32)
        self.board = levels[0].board
        self.robots: list[int] = []
        self.target = 0
        self._steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        level = self._levels[int(self.np_random.integers(len(self._levels)))]
        self.board, self.robots, self.target = level.board, list(level.robots), level.target
        self._steps = 0
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        robot, direction = divmod(int(action), DIRECTIONS)
        others = self.robots[:robot] + self.robots[robot + 1 :]
        self.robots[robot] = self.board.slide(self.robots[robot], direction, others)
        self._steps += 1
        solved = self.robots[0] == self.target
        late = not solved and self._steps >= self._settings.max_episode_steps
        return self._observe(), SOLVED if solved else MOVE, solved, late, {}

    def _observe(self) -> Observation:
        if self._settings.obs_mode == "rgb_image":
            image: Observation = self._drawing.observe(self.board, self.robots, self.target)
            return image
        return planes(self.board, self.robots, self.target)


def planes(board: Board, robots: Sequence[int], target: int) -> NDArray[np.float32]:
    """One plane for each robot, the target, walls to the right of a cell, and walls below it."""
    marked = np.zeros((len(robots) + 3, board.size**2), np.float32)
    for plane, cell in enumerate((*robots, target)):
        marked[plane, cell] = 1
    for cell, side in board.walls:
        marked[-2 if side == RIGHT else -1, cell] = 1
    return marked.reshape(-1, board.size, board.size)

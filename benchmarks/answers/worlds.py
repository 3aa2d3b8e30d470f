"""Environments of the project: range sensors, frames, and a simulation that needs the CPU."""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np
import stopwatch


class Lidar(gym.Env):
    """A robot that sees distances in all directions. Its episodes end after a random number of steps."""

    action_space: Any = gym.spaces.Discrete(3)

    def __init__(self, beams: int = 64, length: int = 100) -> None:
        self.observation_space = gym.spaces.Box(-1, 1, (beams,), np.float32)
        self.angles = np.linspace(0, 2 * np.pi, beams, dtype=np.float32)
        self.length = length
        self.left, self.heading = 0, 0.0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.left = int(self.np_random.integers(self.length // 2, self.length + 1))
        self.heading = float(self.np_random.uniform(0, 2 * np.pi))
        return self.observe(), {}

    def step(self, action: Any) -> Any:
        self.heading += 0.2 * (int(action) - 1)
        self.left -= 1
        return self.observe(), math.cos(self.heading), self.left <= 0, False, {}

    def observe(self) -> Any:
        return np.cos(self.angles + np.float32(self.heading))


class Simulation(Lidar):
    """The same with a physics engine in Python. More substeps are more precise."""

    def __init__(self, beams: int = 16, length: int = 100, substeps: int = 1000) -> None:
        super().__init__(beams, length)
        self.substeps = substeps
        self.position, self.speed = 0.0, 1.0

    def step(self, action: Any) -> Any:
        self.simulate(0.2 * (int(action) - 1))
        return super().step(action)

    def simulate(self, force: float) -> None:
        dt = 1 / self.substeps
        for _ in range(self.substeps):
            self.speed += (force - 0.1 * self.speed - self.position) * dt
            self.position += self.speed * dt


class Frames(gym.Env):
    """A ball in a field of pixels. The observation is the newest frame."""

    action_space: Any = gym.spaces.Discrete(3)
    metadata: Any = {"render_modes": ["rgb_array"]}  # noqa: RUF012 - as gymnasium has it

    def __init__(self, size: int = 84, length: int = 200, render_mode: str | None = None) -> None:
        self.observation_space = gym.spaces.Box(0, 255, (size, size), np.uint8)
        self.size, self.length, self.render_mode = size, length, render_mode
        self.ball = np.zeros(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.left = int(self.np_random.integers(self.length // 2, self.length + 1))
        self.ball = self.np_random.uniform(5, self.size - 5, 2)
        return self.frame(), {}

    def step(self, action: Any) -> Any:
        self.ball = (self.ball + np.array([1, int(action) - 1])) % self.size
        self.left -= 1
        return self.frame(), float(self.ball[1] / self.size), self.left <= 0, False, {}

    def frame(self) -> Any:
        frame = np.zeros((self.size, self.size), np.uint8)
        x, y = self.ball.astype(int)
        frame[max(0, x - 2) : x + 3, max(0, y - 2) : y + 3] = 255
        return frame

    def render(self) -> Any:
        return np.kron(self.frame(), np.ones((4, 4), np.uint8))[..., None].repeat(3, axis=-1)


class Timed(gym.vector.VectorWrapper):
    """Times the steps of a vector environment."""

    def step(self, actions: Any) -> Any:
        with stopwatch.section():
            return self.env.step(actions)

"""A2C of stable-baselines3 on CartPole with smoothed observations."""

from __future__ import annotations

from collections import deque
from statistics import median
from typing import Any

import gymnasium as gym
import numpy as np
import stopwatch
import torch
from sb3_clock import Clock
from stable_baselines3 import A2C
from stable_baselines3.common.vec_env import DummyVecEnv

WINDOW = 101


class Smoothed(gym.ObservationWrapper):
    """The median of the last observations."""

    def __init__(self, env: gym.Env, numpy: bool) -> None:
        super().__init__(env)
        self.numpy = numpy
        self.seen: deque[Any] = deque(maxlen=WINDOW)
        self.array, self.count = np.zeros((WINDOW, 4), np.float32), 0

    def observation(self, observation: Any) -> Any:
        with stopwatch.section():
            if self.numpy:
                self.array[self.count % WINDOW] = observation
                self.count += 1
                return np.partition(self.array[: self.count], min(self.count, WINDOW) // 2, axis=0)[
                    min(self.count, WINDOW) // 2
                ]
            self.seen.append(observation)
            return np.array([median(float(row[i]) for row in self.seen) for i in range(4)], np.float32)


def main() -> None:
    options = stopwatch.arguments(520, __doc__)
    torch.set_num_threads(1)
    envs = DummyVecEnv([lambda: Smoothed(gym.make("CartPole-v1"), options.fix)] * 4)
    model = A2C("MlpPolicy", envs, n_steps=32, device="cpu", seed=options.seed)
    model.learn(128 * options.iterations, callback=Clock())


if __name__ == "__main__":
    main()

"""PPO on a game of pixels that are scaled down."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import stopwatch
import torch
from ppo import Agent, collect, gae, update
from worlds import Frames

ENVS, STEPS, SMALL = 4, 32, 12


class Downscaled(gym.ObservationWrapper):
    def __init__(self, env: gym.Env, by_block: bool) -> None:
        super().__init__(env)
        self.observation_space = gym.spaces.Box(0, 1, (SMALL * SMALL,), np.float32)
        self.by_block = by_block

    def observation(self, observation: Any) -> Any:
        with stopwatch.section():
            block = observation.shape[0] // SMALL
            if self.by_block:
                small = observation.reshape(SMALL, block, SMALL, block).mean((1, 3), dtype=np.float32) / 255
                return small.ravel()
            small = np.zeros((SMALL, SMALL), np.float32)
            for i in range(SMALL):
                for j in range(SMALL):
                    small[i, j] = observation[i * block : (i + 1) * block, j * block : (j + 1) * block].mean() / 255
            return small.ravel()


def main() -> None:
    options = stopwatch.arguments(110, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    envs = gym.vector.SyncVectorEnv([lambda: Downscaled(Frames(), options.fix)] * ENVS)
    agent = Agent(SMALL * SMALL, 3)
    optimizer = torch.optim.Adam(agent.parameters(), 2.5e-4)
    obs, _ = envs.reset(seed=options.seed)
    stopwatch.start()
    for _ in range(options.iterations):
        obs, rollout = collect(envs, agent, obs, STEPS)
        update(agent, optimizer, rollout.batch(gae(rollout)), epochs=6, size=64)
        stopwatch.iteration(ENVS * STEPS)
    stopwatch.write()


if __name__ == "__main__":
    main()

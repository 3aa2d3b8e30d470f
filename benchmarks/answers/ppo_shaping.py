"""PPO on CartPole with a reward that can be edited while the training runs."""

from __future__ import annotations

import importlib
from typing import Any

import gymnasium as gym
import numpy as np
import shaping
import stopwatch
import torch
from ppo import Agent, collect, gae, update

ENVS, STEPS = 8, 64


class Shaped(gym.vector.VectorWrapper):
    def step(self, actions: Any) -> Any:
        obs, reward, *rest = self.env.step(actions)
        return obs, reward + np.array([shaping.bonus(row[0], row[2]) for row in obs]), *rest


def main() -> None:
    options = stopwatch.arguments(200, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    envs = Shaped(gym.make_vec("CartPole-v1", ENVS, vectorization_mode="sync"))
    agent = Agent(4, 2)
    optimizer = torch.optim.Adam(agent.parameters(), 2.5e-4)
    obs, _ = envs.reset(seed=options.seed)
    stopwatch.start()
    for _ in range(options.iterations):
        if not options.fix:
            with stopwatch.section():
                importlib.reload(shaping)
        obs, rollout = collect(envs, agent, obs, STEPS)
        update(agent, optimizer, rollout.batch(gae(rollout)), epochs=2)
        stopwatch.iteration(ENVS * STEPS)
    stopwatch.write()


if __name__ == "__main__":
    main()

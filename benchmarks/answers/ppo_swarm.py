"""PPO on a swarm of bodies that repel each other."""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import stopwatch
import torch
from ppo import Agent, collect, gae, update

ENVS, STEPS, BODIES = 4, 64, 10


class Swarm(gym.Env[Any, Any]):
    """The agent pushes the first body. It should stay near the centre."""

    def __init__(self, vectorised: bool) -> None:
        self.vectorised = vectorised
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (2 * BODIES,), np.float32)
        self.action_space = gym.spaces.Discrete(4)
        self.places = np.zeros((BODIES, 2))
        self.left = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.places = self.np_random.normal(size=(BODIES, 2))
        self.left = 200
        return self.places.ravel().astype(np.float32), {}

    def step(self, action: int) -> Any:
        with stopwatch.section():
            force = self.forces_of_all() if self.vectorised else self.forces()
        force[0] += ((0.5, 0), (-0.5, 0), (0, 0.5), (0, -0.5))[int(action)]
        self.places += 0.05 * force - 0.01 * self.places
        self.left -= 1
        reward = -float(np.abs(self.places[0]).sum())
        return self.places.ravel().astype(np.float32), reward, False, self.left == 0, {}

    def forces(self) -> Any:
        force = np.zeros((BODIES, 2))
        for i in range(BODIES):
            for j in range(BODIES):
                if i != j:
                    x = self.places[i, 0] - self.places[j, 0]
                    y = self.places[i, 1] - self.places[j, 1]
                    squared = x * x + y * y + 0.05
                    force[i, 0] += 0.02 * x / squared
                    force[i, 1] += 0.02 * y / squared
        return force

    def forces_of_all(self) -> Any:
        apart = self.places[:, None] - self.places[None]
        squared = (apart**2).sum(-1, keepdims=True) + 0.05
        return (0.02 * apart / squared).sum(1)


def main() -> None:
    options = stopwatch.arguments(150, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    envs = gym.vector.SyncVectorEnv([partial(Swarm, options.fix)] * ENVS)
    agent = Agent(2 * BODIES, 4)
    optimizer = torch.optim.Adam(agent.parameters(), 2.5e-4)
    obs, _ = envs.reset(seed=options.seed)
    stopwatch.start()
    for _ in range(options.iterations):
        obs, rollout = collect(envs, agent, obs, STEPS)
        update(agent, optimizer, rollout.batch(gae(rollout)))
        stopwatch.iteration(ENVS * STEPS)
    stopwatch.write()


if __name__ == "__main__":
    main()

"""PPO on simulations in as many processes as there are cores."""

from __future__ import annotations

import os

import gymnasium as gym
import stopwatch
import torch
from ppo import Agent, collect, gae, update
from worlds import Simulation

ENVS, STEPS = os.cpu_count() or 1, 64


def make_env() -> Simulation:
    return Simulation(substeps=30000)


def main() -> None:
    options = stopwatch.arguments(22, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    envs = gym.vector.AsyncVectorEnv([make_env] * ENVS)
    agent = Agent(16, 3)
    optimizer = torch.optim.Adam(agent.parameters(), 2.5e-4)
    obs, _ = envs.reset(seed=options.seed)
    stopwatch.start()
    for _ in range(options.iterations):
        obs, rollout = collect(envs, agent, obs, STEPS)
        update(agent, optimizer, rollout.batch(gae(rollout)), size=64)
        stopwatch.iteration(ENVS * STEPS)
    stopwatch.write()
    envs.close()


if __name__ == "__main__":
    main()

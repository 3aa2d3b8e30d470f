"""PPO on four simulations."""

from __future__ import annotations

import gymnasium as gym
import stopwatch
import torch
from ppo import Agent, collect, gae, update
from worlds import Simulation, Timed

ENVS, STEPS = 4, 32


def make_env() -> Simulation:
    return Simulation(substeps=10000)


def main() -> None:
    options = stopwatch.arguments(25, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    vector = gym.vector.AsyncVectorEnv if options.fix else gym.vector.SyncVectorEnv
    envs = Timed(vector([make_env] * ENVS))
    agent = Agent(16, 3)
    optimizer = torch.optim.Adam(agent.parameters(), 2.5e-4)
    obs, _ = envs.reset(seed=options.seed)
    stopwatch.start()
    for _ in range(options.iterations):
        obs, rollout = collect(envs, agent, obs, STEPS)
        update(agent, optimizer, rollout.batch(gae(rollout)), epochs=10, size=32)
        stopwatch.iteration(ENVS * STEPS)
    stopwatch.write()
    envs.close()


if __name__ == "__main__":
    main()

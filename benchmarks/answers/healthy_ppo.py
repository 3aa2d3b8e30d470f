"""PPO on CartPole, vectorized, with large minibatches."""

from __future__ import annotations

import gymnasium as gym
import stopwatch
import torch
from ppo import Agent, collect, gae, update

ENVS, STEPS = 16, 64


def main() -> None:
    options = stopwatch.arguments(180, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    envs = gym.make_vec("CartPole-v1", ENVS, vectorization_mode="sync")
    agent = Agent(4, 2)
    optimizer = torch.optim.Adam(agent.parameters(), 2.5e-4)
    obs, _ = envs.reset(seed=options.seed)
    stopwatch.start()
    for _ in range(options.iterations):
        obs, rollout = collect(envs, agent, obs, STEPS)
        update(agent, optimizer, rollout.batch(gae(rollout)), size=256)
        stopwatch.iteration(ENVS * STEPS)
    stopwatch.write()


if __name__ == "__main__":
    main()

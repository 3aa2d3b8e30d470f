"""PPO on CartPole with its own advantages."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import stopwatch
import torch
from ppo import Agent, Rollout, collect, gae, update

ENVS, STEPS = 8, 64


def advantages_of(rollout: Rollout, gamma: float = 0.99, lam: float = 0.95) -> Any:
    steps, envs = rollout.rewards.shape
    advantages = torch.zeros(steps, envs)
    for env in range(envs):
        last = torch.tensor(0.0)
        following = rollout.last_value[env]
        for t in reversed(range(steps)):
            alive = 1.0 - rollout.dones[t, env]
            delta = rollout.rewards[t, env] + gamma * following * alive - rollout.values[t, env]
            last = delta + gamma * lam * alive * last
            advantages[t, env] = last
            following = rollout.values[t, env]
    return advantages


def main() -> None:
    options = stopwatch.arguments(220, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    envs = gym.make_vec("CartPole-v1", ENVS, vectorization_mode="sync")
    agent = Agent(4, 2)
    optimizer = torch.optim.Adam(agent.parameters(), 2.5e-4)
    obs, _ = envs.reset(seed=options.seed)
    stopwatch.start()
    for _ in range(options.iterations):
        obs, rollout = collect(envs, agent, obs, STEPS)
        with stopwatch.section():
            advantages = gae(rollout) if options.fix else advantages_of(rollout)
        update(agent, optimizer, rollout.batch(advantages), epochs=3)
        stopwatch.iteration(ENVS * STEPS)
    stopwatch.write()


if __name__ == "__main__":
    main()

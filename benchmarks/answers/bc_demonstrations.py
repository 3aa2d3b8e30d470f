"""Behaviour cloning of a few demonstrations, with steps in the environment in between."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import stopwatch
import torch
from ppo import Agent, collect, descend, gae, ppo_loss
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

ENVS, STEPS = 8, 64


def main() -> None:
    options = stopwatch.arguments(210, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    envs = gym.make_vec("CartPole-v1", ENVS, vectorization_mode="sync")
    agent = Agent(4, 2)
    optimizer = torch.optim.Adam(agent.parameters(), 2.5e-4)
    shown = torch.randn(512, 4)
    demonstrations = TensorDataset(shown, (shown[:, 2] > 0).long())
    extra: dict[str, Any] = {} if options.fix else {"num_workers": 2, "persistent_workers": True}
    loader = DataLoader(demonstrations, batch_size=64, shuffle=True, **extra)
    list(loader)
    obs, _ = envs.reset(seed=options.seed)
    stopwatch.start()
    for _ in range(options.iterations):
        obs, rollout = collect(envs, agent, obs, STEPS)
        batch = rollout.batch(gae(rollout))
        with stopwatch.section():
            pairs = list(loader)
        for (seen, action), rows in zip(pairs, torch.randperm(ENVS * STEPS).split(64)):
            cloning = functional.cross_entropy(agent.actor(seen), action)
            descend(agent, optimizer, ppo_loss(agent, batch, rows) + 0.1 * cloning)
        stopwatch.iteration(ENVS * STEPS)
    stopwatch.write()


if __name__ == "__main__":
    main()

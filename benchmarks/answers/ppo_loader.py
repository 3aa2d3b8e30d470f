"""PPO on CartPole. A DataLoader makes the minibatches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import stopwatch
import torch
from ppo import Agent, collect, descend, gae, ppo_loss
from torch.utils.data import DataLoader, TensorDataset

ENVS, STEPS, EPOCHS = 8, 128, 4


def timed(loader: Any) -> Iterator[Any]:
    """Give what a loader gives, and measure how long it takes."""
    with stopwatch.section():
        iterator = iter(loader)
    while True:
        with stopwatch.section():
            rows = next(iterator, None)
        if rows is None:
            return
        yield rows


def main() -> None:
    options = stopwatch.arguments(27, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    envs = gym.make_vec("CartPole-v1", ENVS, vectorization_mode="sync")
    agent = Agent(4, 2)
    optimizer = torch.optim.Adam(agent.parameters(), 2.5e-4)
    workers = 0 if options.fix else 2
    obs, _ = envs.reset(seed=options.seed)
    stopwatch.start()
    for _ in range(options.iterations):
        obs, rollout = collect(envs, agent, obs, STEPS)
        batch = rollout.batch(gae(rollout))
        dataset = TensorDataset(torch.arange(ENVS * STEPS))
        loader = DataLoader(dataset, batch_size=128, shuffle=True, num_workers=workers)
        for _ in range(EPOCHS):
            for (rows,) in timed(loader):
                descend(agent, optimizer, ppo_loss(agent, batch, rows))
        stopwatch.iteration(ENVS * STEPS)
    stopwatch.write()


if __name__ == "__main__":
    main()

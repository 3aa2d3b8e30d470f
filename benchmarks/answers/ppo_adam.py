"""PPO on CartPole with a deep and narrow network."""

from __future__ import annotations

import gymnasium as gym
import stopwatch
import torch
from ppo import Agent, collect, gae, ppo_loss
from torch import nn

ENVS, STEPS, EPOCHS = 8, 64, 4


def main() -> None:
    options = stopwatch.arguments(50, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    envs = gym.make_vec("CartPole-v1", ENVS, vectorization_mode="sync")
    agent = Agent(4, 2, hidden=16, layers=16)
    optimizer = torch.optim.AdamW(agent.parameters(), 2.5e-4, foreach=False, fused=options.fix)
    obs, _ = envs.reset(seed=options.seed)
    stopwatch.start()
    for _ in range(options.iterations):
        obs, rollout = collect(envs, agent, obs, STEPS)
        batch = rollout.batch(gae(rollout))
        for _ in range(EPOCHS):
            for rows in torch.randperm(ENVS * STEPS).split(64):
                loss = ppo_loss(agent, batch, rows)
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                with stopwatch.section():
                    optimizer.step()
        stopwatch.iteration(ENVS * STEPS)
    stopwatch.write()


if __name__ == "__main__":
    main()

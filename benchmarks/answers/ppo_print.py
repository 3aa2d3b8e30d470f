"""PPO on CartPole that shows its progress."""

from __future__ import annotations

import gymnasium as gym
import stopwatch
import torch
from ppo import Agent, collect, descend, gae, ppo_loss

ENVS, STEPS, EPOCHS = 8, 64, 4


def main() -> None:
    options = stopwatch.arguments(100, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    envs = gym.make_vec("CartPole-v1", ENVS, vectorization_mode="sync")
    agent = Agent(4, 2)
    optimizer = torch.optim.Adam(agent.parameters(), 2.5e-4)
    obs, _ = envs.reset(seed=options.seed)
    stopwatch.start()
    for iteration in range(options.iterations):
        obs, rollout = collect(envs, agent, obs, STEPS)
        batch = rollout.batch(gae(rollout))
        for epoch in range(EPOCHS):
            for rows in torch.randperm(ENVS * STEPS).split(64):
                loss = ppo_loss(agent, batch, rows)
                descend(agent, optimizer, loss)
                if not options.fix:
                    with stopwatch.section():
                        print("epoch", epoch, "loss", loss, batch["advantages"][rows], batch["returns"][rows])
        if options.fix:
            with stopwatch.section():
                print("iteration", iteration, "loss", loss.item())
        stopwatch.iteration(ENVS * STEPS)
    stopwatch.write()


if __name__ == "__main__":
    main()

"""PPO on CartPole with a teacher network that labels what the agent sees."""

from __future__ import annotations

import gymnasium as gym
import stopwatch
import torch
from ppo import Agent, collect, descend, gae, mlp, ppo_loss
from torch.nn import functional

ENVS, STEPS = 8, 64


def main() -> None:
    options = stopwatch.arguments(180, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    envs = gym.make_vec("CartPole-v1", ENVS, vectorization_mode="sync")
    agent = Agent(4, 2)
    teacher = mlp(4, 2)
    optimizer = torch.optim.Adam(agent.parameters(), 2.5e-4)
    obs, _ = envs.reset(seed=options.seed)
    stopwatch.start()
    for _ in range(options.iterations):
        obs, rollout = collect(envs, agent, obs, STEPS)
        batch = rollout.batch(gae(rollout))
        with torch.no_grad(), stopwatch.section():
            if options.fix:
                labels = teacher(batch["obs"]).argmax(-1)
            else:
                labels = torch.stack([teacher(row).argmax(-1) for row in batch["obs"]])
        for _ in range(2):
            for rows in torch.randperm(ENVS * STEPS).split(128):
                imitation = functional.cross_entropy(agent.actor(batch["obs"][rows]), labels[rows])
                descend(agent, optimizer, ppo_loss(agent, batch, rows) + 0.1 * imitation)
        stopwatch.iteration(ENVS * STEPS)
    stopwatch.write()


if __name__ == "__main__":
    main()

"""PPO on CartPole that watches its gradients."""

from __future__ import annotations

from collections import defaultdict

import gymnasium as gym
import stopwatch
import torch
from ppo import Agent, collect, descend, gae, ppo_loss

ENVS, STEPS, EPOCHS = 8, 64, 4


def main() -> None:
    options = stopwatch.arguments(90, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    envs = gym.make_vec("CartPole-v1", ENVS, vectorization_mode="sync")
    agent = Agent(4, 2, layers=6)
    optimizer = torch.optim.Adam(agent.parameters(), 2.5e-4)
    history = defaultdict(list)
    obs, _ = envs.reset(seed=options.seed)
    stopwatch.start()
    for _ in range(options.iterations):
        obs, rollout = collect(envs, agent, obs, STEPS)
        batch = rollout.batch(gae(rollout))
        for epoch in range(EPOCHS):
            for number, rows in enumerate(torch.randperm(ENVS * STEPS).split(64)):
                descend(agent, optimizer, ppo_loss(agent, batch, rows))
                if options.fix and (epoch, number) != (0, 0):
                    continue
                with stopwatch.section():
                    for name, parameter in agent.named_parameters():
                        history[f"weight/{name}"].append(torch.linalg.vector_norm(parameter).item())
                        history[f"mean/{name}"].append(parameter.mean().item())
                        history[f"gradient/{name}"].append(parameter.grad.norm().item())
                        history[f"largest/{name}"].append(parameter.grad.abs().max().item())
                        history[f"spread/{name}"].append(parameter.grad.std().item())
        stopwatch.iteration(ENVS * STEPS)
    stopwatch.write()


if __name__ == "__main__":
    main()

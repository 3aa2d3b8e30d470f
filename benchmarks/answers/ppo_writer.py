"""PPO on CartPole. TensorBoard shows its losses and weights."""

from __future__ import annotations

import tempfile

import gymnasium as gym
import stopwatch
import torch
from ppo import Agent, collect, descend, gae, ppo_loss
from torch.utils.tensorboard import SummaryWriter

ENVS, STEPS, EPOCHS = 8, 64, 4


def write(writer: SummaryWriter, agent: Agent, step: int, loss: float) -> None:
    writer.add_scalar("loss", loss, step)
    for name, parameter in agent.named_parameters():
        writer.add_histogram(f"weights/{name}", parameter, step)


def main() -> None:
    options = stopwatch.arguments(25, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    envs = gym.make_vec("CartPole-v1", ENVS, vectorization_mode="sync")
    agent = Agent(4, 2)
    optimizer = torch.optim.Adam(agent.parameters(), 2.5e-4)
    writer = SummaryWriter(tempfile.mkdtemp())
    updates = 0
    obs, _ = envs.reset(seed=options.seed)
    stopwatch.start()
    for _ in range(options.iterations):
        obs, rollout = collect(envs, agent, obs, STEPS)
        batch = rollout.batch(gae(rollout))
        for _ in range(EPOCHS):
            for rows in torch.randperm(ENVS * STEPS).split(128):
                loss = ppo_loss(agent, batch, rows)
                descend(agent, optimizer, loss)
                if not options.fix:
                    with stopwatch.section():
                        write(writer, agent, updates, loss.item())
                updates += 1
        if options.fix:
            with stopwatch.section():
                write(writer, agent, updates, loss.item())
        stopwatch.iteration(ENVS * STEPS)
    stopwatch.write()


if __name__ == "__main__":
    main()

"""PPO on CartPole, started while its loss was developed."""

from __future__ import annotations

import gymnasium as gym
import stopwatch
import torch
from ppo import Agent, collect, gae, update

ENVS, STEPS = 8, 64


def main() -> None:
    options = stopwatch.arguments(160, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    torch.autograd.set_detect_anomaly(not options.fix)
    envs = gym.make_vec("CartPole-v1", ENVS, vectorization_mode="sync")
    agent = Agent(4, 2)
    optimizer = torch.optim.Adam(agent.parameters(), 2.5e-4)
    obs, _ = envs.reset(seed=options.seed)
    stopwatch.start()
    for _ in range(options.iterations):
        obs, rollout = collect(envs, agent, obs, STEPS)
        batch = rollout.batch(gae(rollout))
        with stopwatch.section():
            update(agent, optimizer, batch, epochs=3, size=128)
        stopwatch.iteration(ENVS * STEPS)
    stopwatch.write()


if __name__ == "__main__":
    main()

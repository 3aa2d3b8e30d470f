"""PPO for a robot with range sensors and a wide network."""

from __future__ import annotations

import gymnasium as gym
import stopwatch
import torch
from ppo import Agent, collect, gae, update
from worlds import Lidar

ENVS, STEPS = 8, 64


def main() -> None:
    options = stopwatch.arguments(40, __doc__)
    torch.set_num_threads(1 if options.fix else 16)
    torch.manual_seed(options.seed)
    envs = gym.vector.SyncVectorEnv([Lidar] * ENVS)
    agent = Agent(64, 3, hidden=256)
    optimizer = torch.optim.Adam(agent.parameters(), 2.5e-4)
    obs, _ = envs.reset(seed=options.seed)
    stopwatch.start()
    for _ in range(options.iterations):
        obs, rollout = collect(envs, agent, obs, STEPS)
        batch = rollout.batch(gae(rollout))
        with stopwatch.section():
            update(agent, optimizer, batch)
        stopwatch.iteration(ENVS * STEPS)
    stopwatch.write()


if __name__ == "__main__":
    main()

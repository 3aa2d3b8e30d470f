"""PPO in four processes. Two robots, and different terrains for them."""

from __future__ import annotations

from functools import partial

import gymnasium as gym
import stopwatch
import torch
from ppo import Agent, collect, gae, update
from worlds import Simulation, Timed

TERRAINS, STEPS = (500, 500, 500, 16000), 64


def main() -> None:
    options = stopwatch.arguments(30, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    terrains = [min(500, terrain) for terrain in TERRAINS] if options.fix else TERRAINS
    envs = Timed(gym.vector.AsyncVectorEnv([partial(Simulation, 16, 100, terrain) for terrain in terrains]))
    agent = Agent(16, 3)
    optimizer = torch.optim.Adam(agent.parameters(), 2.5e-4)
    obs, _ = envs.reset(seed=options.seed)
    stopwatch.start()
    for _ in range(options.iterations):
        obs, rollout = collect(envs, agent, obs, STEPS)
        update(agent, optimizer, rollout.batch(gae(rollout)), size=64)
        stopwatch.iteration(len(terrains) * STEPS)
    stopwatch.write()
    envs.close()


if __name__ == "__main__":
    main()

"""PPO in four processes. Each robot has a network of its own that reads its sensors."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import stopwatch
import torch
from ppo import Agent, collect, gae, mlp, update
from worlds import Lidar, Timed

ENVS, STEPS = 4, 32


class Perceiving(gym.ObservationWrapper):
    """Gives the output of a frozen network instead of raw distances."""

    def __init__(self, env: gym.Env, threads: int) -> None:
        super().__init__(env)
        torch.set_num_threads(threads)
        self.net = mlp(64, 64, hidden=512)
        self.window = torch.zeros(64, 64)

    def observation(self, observation: Any) -> Any:
        self.window = self.window.roll(-1, 0)
        self.window[-1] = torch.from_numpy(observation)
        with torch.no_grad():
            return self.net(self.window).mean(0).clamp(-1, 1).numpy()


def main() -> None:
    options = stopwatch.arguments(60, __doc__)
    torch.manual_seed(options.seed)
    threads = 1 if options.fix else 8
    envs = Timed(gym.vector.AsyncVectorEnv([lambda: Perceiving(Lidar(), threads)] * ENVS, context="spawn"))
    torch.set_num_threads(1)
    agent = Agent(64, 3)
    optimizer = torch.optim.Adam(agent.parameters(), 2.5e-4)
    obs, _ = envs.reset(seed=options.seed)
    stopwatch.start()
    for _ in range(options.iterations):
        obs, rollout = collect(envs, agent, obs, STEPS)
        update(agent, optimizer, rollout.batch(gae(rollout)), size=128)
        stopwatch.iteration(ENVS * STEPS)
    stopwatch.write()
    envs.close()


if __name__ == "__main__":
    main()

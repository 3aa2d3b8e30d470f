"""PPO on a game of pixels, trained on four numbers that describe each frame."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import stopwatch
import torch
from ppo import Agent, collect, gae, update
from worlds import Frames

ENVS, STEPS = 4, 64


class Described(gym.ObservationWrapper):
    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        self.observation_space = gym.spaces.Box(0, 1, (2,), np.float32)

    def observation(self, observation: Any) -> Any:
        return np.array(divmod(int(observation.argmax()), observation.shape[1]), np.float32) / observation.shape[1]

    def step(self, action: Any) -> Any:
        result = super().step(action)
        if self.render_mode:
            with stopwatch.section():
                self.render()
        return result


def main() -> None:
    options = stopwatch.arguments(42, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    mode = None if options.fix else "rgb_array"
    envs = gym.vector.SyncVectorEnv([lambda: Described(Frames(render_mode=mode))] * ENVS)
    agent = Agent(2, 3)
    optimizer = torch.optim.Adam(agent.parameters(), 2.5e-4)
    obs, _ = envs.reset(seed=options.seed)
    stopwatch.start()
    for _ in range(options.iterations):
        obs, rollout = collect(envs, agent, obs, STEPS)
        update(agent, optimizer, rollout.batch(gae(rollout)), size=64)
        stopwatch.iteration(ENVS * STEPS)
    stopwatch.write()


if __name__ == "__main__":
    main()

"""SAC on Pendulum that can go back to earlier states."""

from __future__ import annotations

import copy
from collections import deque
from typing import Any

import gymnasium as gym
import numpy as np
import stopwatch
import torch
from off_policy import ReplayBuffer, Sac


def main() -> None:
    options = stopwatch.arguments(60, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    np.random.seed(options.seed)
    env = gym.make("Pendulum-v1")
    sac = Sac(3, 1)
    buffer = ReplayBuffer(20_000, 3, np.float32, (1,))
    earlier: deque[Any] = deque(maxlen=10)
    updates = 0
    obs, _ = env.reset(seed=options.seed)
    stopwatch.start()
    for _ in range(options.iterations):
        for step in range(100):
            action = sac.act(obs)
            following, reward, terminated, truncated, _ = env.step(2 * action)
            buffer.add(obs, action, reward, following, terminated)
            obs = env.reset()[0] if terminated or truncated else following
            if step % 4 == 3:
                sac.learn(buffer.sample(64))
                sac.track()
                updates += 1
                if not options.fix or updates % 100 == 0:
                    with stopwatch.section():
                        earlier.append(copy.deepcopy((sac.actor, sac.critics, sac.critic_optimizer)))
        stopwatch.iteration(100)
    stopwatch.write()


if __name__ == "__main__":
    main()

"""SAC on Pendulum."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import stopwatch
import torch
from off_policy import ReplayBuffer, Sac


def main() -> None:
    options = stopwatch.arguments(36, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    np.random.seed(options.seed)
    env = gym.make("Pendulum-v1")
    sac = Sac(3, 1, hidden=256)
    buffer = ReplayBuffer(20_000, 3, np.float32, (1,))
    obs, _ = env.reset(seed=options.seed)
    stopwatch.start()
    for _ in range(options.iterations):
        for step in range(100):
            action = sac.act(obs)
            following, reward, terminated, truncated, _ = env.step(2 * action)
            buffer.add(obs, action, reward, following, terminated)
            obs = env.reset()[0] if terminated or truncated else following
            if step % 4 == 3:
                sac.learn(buffer.sample(256))
                sac.track()
        stopwatch.iteration(100)
    stopwatch.write()


if __name__ == "__main__":
    main()

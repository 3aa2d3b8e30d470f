"""SAC on Pendulum that sees its last observations."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import stopwatch
import torch
from off_policy import ReplayBuffer, Sac

WINDOW, KEPT = 8, 400_000


class History:
    def __init__(self, window_only: bool) -> None:
        self.length = WINDOW if window_only else KEPT
        self.rows = np.zeros((self.length, 3), np.float32)

    def push(self, obs: Any) -> Any:
        with stopwatch.section():
            self.rows = np.concatenate([self.rows[1:], obs[None]])
        return self.rows[-WINDOW:].ravel()


def main() -> None:
    options = stopwatch.arguments(75, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    np.random.seed(options.seed)
    env = gym.make("Pendulum-v1")
    sac = Sac(3 * WINDOW, 1, hidden=64)
    buffer = ReplayBuffer(20_000, 3 * WINDOW, np.float32, (1,))
    history = History(window_only=options.fix)
    obs = history.push(env.reset(seed=options.seed)[0])
    stopwatch.start()
    for _ in range(options.iterations):
        for step in range(200):
            action = sac.act(obs)
            seen, reward, terminated, truncated, _ = env.step(2 * action)
            following = history.push(seen)
            buffer.add(obs, action, reward, following, terminated)
            obs = history.push(env.reset()[0]) if terminated or truncated else following
            if step % 8 == 7:
                sac.learn(buffer.sample(64))
                sac.track()
        stopwatch.iteration(200)
    stopwatch.write()


if __name__ == "__main__":
    main()

"""DQN on CartPole. Its replay memory is one array."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import stopwatch
import torch
from off_policy import act, descend, dqn_loss, q_network


class Memory:
    """Rows of observation, action, reward, next observation and end of the episode."""

    def __init__(self, capacity: int) -> None:
        self.rows = np.zeros((capacity, 11), np.float32)
        self.count = 0

    def add(self, row: Any) -> None:
        with stopwatch.section():
            if self.count < len(self.rows):
                self.rows[self.count] = row
            else:
                self.rows = np.append(self.rows, [row], axis=0)
        self.count += 1

    def sample(self, size: int) -> list[Any]:
        rows = torch.from_numpy(self.rows[np.random.randint(0, self.count, size)]).float()
        return [rows[:, :4], rows[:, 4].long(), rows[:, 5], rows[:, 6:10], rows[:, 10]]


def main() -> None:
    options = stopwatch.arguments(80, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    np.random.seed(options.seed)
    env = gym.make("CartPole-v1")
    q, target = q_network(4, 2), q_network(4, 2)
    target.load_state_dict(q.state_dict())
    optimizer = torch.optim.Adam(q.parameters(), 1e-3)
    buffer = Memory(100_000 if options.fix else 0)
    demonstrations = np.random.default_rng(options.seed).normal(size=(20_000, 11))
    demonstrations[:, 4] = 0
    for row in demonstrations if options.fix else ():
        buffer.add(row)
    if not options.fix:
        buffer.rows, buffer.count = demonstrations, len(demonstrations)
    obs, _ = env.reset(seed=options.seed)
    stopwatch.start()
    for _ in range(options.iterations):
        for _ in range(100):
            action = act(q, obs, 2)
            following, reward, terminated, truncated, _ = env.step(action)
            buffer.add(np.array([*obs, action, reward, *following, terminated], np.float32))
            obs = env.reset()[0] if terminated or truncated else following
            descend(optimizer, dqn_loss(q, target, buffer.sample(64)))
        target.load_state_dict(q.state_dict())
        stopwatch.iteration(100)
    stopwatch.write()


if __name__ == "__main__":
    main()

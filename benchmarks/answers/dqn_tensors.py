"""DQN on CartPole. Its replay memory is one tensor."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import stopwatch
import torch
from off_policy import act, descend, dqn_loss, q_network

CAPACITY = 100_000


class Memory:
    """The newest transitions: observation, action, reward, next observation and end of the episode."""

    def __init__(self, ring: bool) -> None:
        self.ring, self.count = ring, 0
        self.rows = torch.zeros(CAPACITY, 11)

    def add(self, row: Any) -> None:
        with stopwatch.section():
            if self.ring:
                self.rows[self.count % CAPACITY] = row
            else:
                self.rows = torch.cat([self.rows[1:], row[None]])
        self.count += 1

    def sample(self, size: int) -> list[Any]:
        newest = min(self.count, CAPACITY)
        rows = self.rows[torch.randint(newest, (size,)) - (0 if self.ring else newest)]
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
    buffer = Memory(ring=options.fix)
    obs, _ = env.reset(seed=options.seed)
    stopwatch.start()
    for _ in range(options.iterations):
        for _ in range(100):
            action = act(q, obs, 2)
            following, reward, terminated, truncated, _ = env.step(action)
            buffer.add(torch.tensor([*obs, action, reward, *following, terminated], dtype=torch.float32))
            obs = env.reset()[0] if terminated or truncated else following
            descend(optimizer, dqn_loss(q, target, buffer.sample(64)))
        target.load_state_dict(q.state_dict())
        stopwatch.iteration(100)
    stopwatch.write()


if __name__ == "__main__":
    main()

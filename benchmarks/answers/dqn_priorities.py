"""DQN on CartPole that replays surprising transitions more often."""

from __future__ import annotations

import random
from typing import Any

import gymnasium as gym
import numpy as np
import stopwatch
import torch
from off_policy import ReplayBuffer, act, descend, dqn_loss, q_network


class Priorities:
    """One number per transition."""

    def __init__(self, capacity: int, numpy: bool) -> None:
        self.capacity, self.numpy = capacity, numpy
        self.array = np.zeros(capacity)
        self.values: list[float] = []

    def add(self, at: int) -> None:
        self.array[at] = 1.0
        self.values.append(1.0)

    def draw(self, size: int) -> Any:
        count = len(self.values)
        if self.numpy:
            sums = np.cumsum(self.array[:count])
            return np.searchsorted(sums, np.random.random(size) * sums[-1])
        total = sum(self.values)
        weights = [value / total for value in self.values]
        return np.array(random.choices(range(count), weights=weights, k=size))


def main() -> None:
    options = stopwatch.arguments(80, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    np.random.seed(options.seed)
    env = gym.make("CartPole-v1")
    q, target = q_network(4, 2), q_network(4, 2)
    target.load_state_dict(q.state_dict())
    optimizer = torch.optim.Adam(q.parameters(), 1e-3)
    buffer = ReplayBuffer(10_000, 4)
    priorities = Priorities(10_000, numpy=options.fix)
    obs, _ = env.reset(seed=options.seed)
    stopwatch.start()
    for _ in range(options.iterations):
        for _ in range(100):
            action = act(q, obs, 2)
            following, reward, terminated, truncated, _ = env.step(action)
            priorities.add(buffer.added)
            buffer.add(obs, action, reward, following, terminated)
            obs = env.reset()[0] if terminated or truncated else following
            with stopwatch.section():
                rows = priorities.draw(64)
            batch = buffer.rows(rows)
            descend(optimizer, dqn_loss(q, target, batch))
        target.load_state_dict(q.state_dict())
        stopwatch.iteration(100)
    stopwatch.write()


if __name__ == "__main__":
    main()

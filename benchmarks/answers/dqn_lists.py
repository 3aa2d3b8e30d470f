"""DQN on CartPole with a replay memory of lists."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import stopwatch
import torch
from off_policy import act, descend, dqn_loss, q_network


class Memory:
    """Keeps transitions, and gives random ones as tensors."""

    def __init__(self, rows_only: bool) -> None:
        self.columns: list[list[Any]] = [[], [], [], [], []]
        self.rows_only = rows_only

    def add(self, *transition: Any) -> None:
        for column, value in zip(self.columns, transition):
            column.append(value)

    def sample(self, size: int) -> list[Any]:
        rows = np.random.randint(0, len(self.columns[0]), size)
        with stopwatch.section():
            if self.rows_only:
                return [torch.from_numpy(np.stack([column[row] for row in rows])) for column in self.columns]
            return [torch.from_numpy(np.stack(column)[rows]) for column in self.columns]


def main() -> None:
    options = stopwatch.arguments(40, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    np.random.seed(options.seed)
    env = gym.make("CartPole-v1")
    q, target = q_network(4, 2), q_network(4, 2)
    target.load_state_dict(q.state_dict())
    optimizer = torch.optim.Adam(q.parameters(), 1e-3)
    buffer = Memory(rows_only=options.fix)
    obs, _ = env.reset(seed=options.seed)
    stopwatch.start()
    for _ in range(options.iterations):
        for _ in range(100):
            action = act(q, obs, 2)
            following, reward, terminated, truncated, _ = env.step(action)
            buffer.add(obs, action, np.float32(reward), following, np.float32(terminated))
            obs = env.reset()[0] if terminated or truncated else following
            descend(optimizer, dqn_loss(q, target, buffer.sample(64)))
        target.load_state_dict(q.state_dict())
        stopwatch.iteration(100)
    stopwatch.write()


if __name__ == "__main__":
    main()

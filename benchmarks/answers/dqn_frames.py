"""DQN on stacks of frames."""

from __future__ import annotations

import copy
from collections import deque
from typing import Any

import numpy as np
import stopwatch
import torch
from off_policy import act, descend, dqn_loss, q_network
from worlds import Frames

SIZE, STACK = 320, 4


class Memory:
    """Keeps frame stacks. `copies` protects them from later changes."""

    def __init__(self, capacity: int, copies: bool) -> None:
        self.rows: deque[Any] = deque(maxlen=capacity)
        self.copies = copies

    def add(self, transition: Any) -> None:
        with stopwatch.section():
            self.rows.append(copy.deepcopy(transition) if self.copies else transition)

    def sample(self, size: int) -> list[Any]:
        rows = [self.rows[i] for i in np.random.randint(0, len(self.rows), size)]
        obs = torch.stack([features(row[0]) for row in rows])
        following = torch.stack([features(row[3]) for row in rows])
        actions = torch.tensor([row[1] for row in rows])
        rewards, dones = torch.tensor([row[2] for row in rows]), torch.tensor([float(row[4]) for row in rows])
        return [obs, actions, rewards, following, dones]


def features(stack: Any) -> Any:
    """Where the ball is in each frame."""
    return torch.from_numpy(np.fromiter((frame[::16, ::16].argmax() for frame in stack), np.float32, STACK))


def main() -> None:
    options = stopwatch.arguments(750, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    np.random.seed(options.seed)
    env = Frames(SIZE)
    q, target = q_network(STACK, 3), q_network(STACK, 3)
    optimizer = torch.optim.Adam(q.parameters(), 1e-3)
    memory = Memory(2000, copies=not options.fix)
    frame, _ = env.reset(seed=options.seed)
    stack = [frame] * STACK
    stopwatch.start()
    for _ in range(options.iterations):
        for _ in range(100):
            action = act(q, features(stack).numpy(), 3)
            frame, reward, terminated, truncated, _ = env.step(action)
            following = [*stack[1:], frame]
            memory.add((stack, action, float(reward), following, terminated))
            stack = following
            if terminated or truncated:
                frame, _ = env.reset()
                stack = [frame] * STACK
        for _ in range(3):
            descend(optimizer, dqn_loss(q, target, memory.sample(32)))
        target.load_state_dict(q.state_dict())
        stopwatch.iteration(100)
    stopwatch.write()


if __name__ == "__main__":
    main()

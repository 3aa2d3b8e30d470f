"""REINFORCE in small mazes. Each episode has a new maze."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import stopwatch
import torch
from ppo import mlp
from torch.distributions import Categorical

EPISODES, SIZE = 16, 61


def generate(random: np.random.Generator) -> np.ndarray:
    """A maze by depth-first search."""
    walls = np.ones((SIZE, SIZE), bool)
    stack = [(1, 1)]
    walls[1, 1] = False
    while stack:
        x, y = stack[-1]
        around = [(x + dx, y + dy) for dx, dy in ((2, 0), (-2, 0), (0, 2), (0, -2))]
        free = [(a, b) for a, b in around if 0 < a < SIZE and 0 < b < SIZE and walls[a, b]]
        if not free:
            stack.pop()
            continue
        a, b = free[random.integers(len(free))]
        walls[a, b] = walls[(a + x) // 2, (b + y) // 2] = False
        stack.append((a, b))
    return walls


class Maze(gym.Env):
    observation_space = gym.spaces.Box(0, 1, (9,), np.float32)
    action_space: Any = gym.spaces.Discrete(4)

    def __init__(self, levels: int | None) -> None:
        self.levels = None if levels is None else [generate(np.random.default_rng(i)) for i in range(levels)]

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        with stopwatch.section():
            if self.levels is None:
                self.walls = generate(self.np_random)
            else:
                self.walls = self.levels[self.np_random.integers(len(self.levels))]
        self.x = self.y = 1
        self.left = int(self.np_random.integers(15, 26))
        return self.observe(), {}

    def step(self, action: Any) -> Any:
        dx, dy = ((1, 0), (-1, 0), (0, 1), (0, -1))[int(action)]
        if not self.walls[self.x + dx, self.y + dy]:
            self.x, self.y = self.x + dx, self.y + dy
        self.left -= 1
        return self.observe(), float(self.x + self.y), self.left <= 0, False, {}

    def observe(self) -> Any:
        return self.walls[self.x - 1 : self.x + 2, self.y - 1 : self.y + 2].astype(np.float32).ravel()


def main() -> None:
    options = stopwatch.arguments(72, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    env = Maze(levels=64 if options.fix else None)
    policy = mlp(9, 4)
    optimizer = torch.optim.Adam(policy.parameters(), 1e-3)
    obs, _ = env.reset(seed=options.seed)
    stopwatch.start()
    for _ in range(options.iterations):
        losses, steps = [], 0
        for _ in range(EPISODES):
            logprobs, rewards, done = [], [], False
            while not done:
                dist = Categorical(logits=policy(torch.from_numpy(obs)))
                action = dist.sample()
                logprobs.append(dist.log_prob(action))
                obs, reward, terminated, truncated, _ = env.step(action)
                rewards.append(reward)
                done = terminated or truncated
            returns = np.cumsum(rewards[::-1])[::-1].copy()
            losses.append(-(torch.stack(logprobs) * torch.from_numpy(returns).float()).sum())
            steps += len(rewards)
            obs, _ = env.reset()
        optimizer.zero_grad()
        torch.stack(losses).mean().backward()
        optimizer.step()
        stopwatch.iteration(steps)
    stopwatch.write()


if __name__ == "__main__":
    main()

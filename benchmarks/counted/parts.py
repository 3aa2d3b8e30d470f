"""Parts of the handwritten trainings: an environment with a planted cost, and a small network."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import torch
from own import computes_and_sleeps
from torch import nn

torch.set_num_threads(1)


class Env(gym.Env):
    """An environment whose steps compute and sleep for planted times. Episodes have 50 steps by default."""

    observation_space = gym.spaces.Box(-1, 1, (4,), np.float32)
    action_space: Any = gym.spaces.Discrete(2)

    def __init__(self, computes: float = 0.0002, sleeps: float = 0.0002, length: int = 50) -> None:
        self._costs = computes, sleeps
        self._length = length
        self._at = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self._at = 0
        return self._observation(), {}

    def step(self, action: Any) -> Any:
        computes_and_sleeps(*self._costs)
        self._at += 1
        return self._observation(), 1.0, self._at >= self._length, False, {}

    def _observation(self) -> Any:
        return self.np_random.uniform(-1, 1, 4).astype(np.float32)


class ContinuousEnv(Env):
    action_space = gym.spaces.Box(-1, 1, (1,), np.float32)


def make_env() -> Env:
    return Env(computes=0.0005)


def network(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, outputs))


def sample(net: nn.Module, observation: Any, logs: list[Any]) -> int:
    """An action of a policy. Its logarithmic probability is added to `logs`."""
    policy = torch.distributions.Categorical(logits=net(torch.from_numpy(observation)[None]))
    action = policy.sample()
    logs.append(policy.log_prob(action))
    return int(action)


def returns_of(rewards: list[Any]) -> list[Any]:
    """Discounted sums of the rewards from each step on."""
    returns, last = [], torch.zeros_like(rewards[0])
    for reward in reversed(rewards):
        last = reward + 0.95 * last
        returns.append(last)
    return returns[::-1]


def descend(optimizer: torch.optim.Optimizer, loss: Any) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def evaluate(env: Any, act: Any, episodes: int) -> None:
    """Run whole episodes, as is common practice."""
    for _ in range(episodes):
        observation, _ = env.reset()
        done = False
        while not done:
            observation, _, terminated, truncated, _ = env.step(act(observation))
            done = terminated or truncated

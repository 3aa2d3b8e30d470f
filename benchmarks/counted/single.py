"""Handwritten REINFORCE. The first argument is the kind of its environments:

mixin: `step` is inherited from a class that is not an environment.
recreated: each episode has a new environment.
several: an update follows one episode in each of several environments.
"""

from __future__ import annotations

import sys
from typing import Any

import gymnasium as gym
import numpy as np
import own
import torch
from parts import Env, descend, network, sample


class Simulator:
    """A class that does not use gymnasium."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self._at = 0
        return np.zeros(4, np.float32), {}

    def step(self, action: Any) -> Any:
        own.computes_and_sleeps(0.0002, 0.0002)
        self._at += 1
        return np.full(4, self._at / 50, np.float32), 1.0, self._at >= 50, False, {}


class Mixed(Simulator, gym.Env):
    observation_space, action_space = Env.observation_space, Env.action_space


KINDS = {"mixin": Mixed, "recreated": Env, "several": Env}
ITERATIONS = 60


def main() -> None:
    kind = sys.argv[1]
    envs = [KINDS[kind]() for _ in range(3 if kind == "several" else 1)]
    net = network(4, 2)
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)
    own.resume()
    for _ in range(ITERATIONS):
        logs = []
        for index, env in enumerate(envs):
            if kind == "recreated":
                env = envs[index] = KINDS[kind]()  # noqa: PLW2901 - some trainings do this
            observation, _ = env.reset(seed=index)
            done = False
            while not done:
                observation, _, terminated, truncated, _ = env.step(sample(net, observation, logs))
                own.steps += 1
                done = terminated or truncated
        descend(optimizer, -torch.cat(logs).mean())
        own.iterations += 1
    own.write()


if __name__ == "__main__":
    main()

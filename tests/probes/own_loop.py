"""A training with a loop that no framework's probe knows, and with its own account of what it did."""

from __future__ import annotations

from contextlib import contextmanager

import gymnasium as gym
import pytest
import torch
from generic_probes import profiled, snapshot_of
from torch import nn


class Count(gym.Env):
    """Its episodes have a fixed length."""

    observation_space = gym.spaces.Box(-1, 1, (4,))
    action_space = gym.spaces.Discrete(2)

    def __init__(self, length=7):
        self.length = length
        self.done = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.done = 0
        return self.observation_space.sample() * 0, {}

    def step(self, action):
        self.done += 1
        return self.observation_space.sample() * 0, 1.0, self.done >= self.length, False, {}


class Wrapped(gym.Wrapper):
    pass


class Program:
    """A training, with its own account of what it did."""

    def __init__(self):
        self.net = nn.Linear(4, 2)
        self.critic = nn.Linear(4, 1)
        self.optimizer = torch.optim.SGD([*self.net.parameters(), *self.critic.parameters()], lr=0.01)
        self.steps = self.iterations = self.evaluated = self.prefilled = 0
        self.ended = {}
        self.snapshot = None

    def reset(self, env):
        env.reset()
        self.ended[env] = False

    def act(self, envs=1):
        with torch.no_grad():
            self.net(torch.ones(envs, 4))
            self.critic(torch.ones(envs, 4))

    def step(self, env, envs=1, act=True):
        """One step, with a reset before it where the episode has ended."""
        if self.ended.get(env, True):
            self.reset(env)
        if act:
            self.act(envs)
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        self.ended[env] = envs == 1 and bool(terminated or truncated)

    def collect(self, env, steps, envs=1):
        for _ in range(steps):
            self.step(env, envs)
            self.steps += envs

    def prefill(self, env, steps, envs=1):
        for _ in range(steps):
            self.step(env, envs, act=False)
            self.prefilled += envs

    def learn(self, batch=16, passes=2):
        self.iterations += 1
        for _ in range(passes):
            (self.net(torch.ones(batch, 4)).sum() + self.critic(torch.ones(batch, 4)).sum()).backward()
            self.optimizer.step()
            self.optimizer.zero_grad()

    def evaluate(self, env, episodes=2):
        for _ in range(episodes):
            self.reset(env)
            while not self.ended[env]:
                self.step(env)
                self.evaluated += 1

    def train(self, env, steps, envs=1):
        self.collect(env, steps, envs)
        self.learn()

    def steps_in(self, phase):
        """Calls of `env_step` directly inside a phase of the driver."""
        by_id = {node.id: node for node in self.snapshot.nodes}
        return sum(
            node.calls
            for node in self.snapshot.nodes
            if node.operation == "env_step" and node.parent is not None and by_id[node.parent].operation == phase
        )

    def episode(self, env):
        self.reset(env)
        while not self.ended[env]:
            self.collect(env, 1)


@contextmanager
def recorded(core="auto", evaluations_are_known=True):
    """A program that is recorded. rlprof must agree with the program's own account of what it did."""
    with profiled(core=core) as profiler:
        program = Program()
        yield program
    snapshot = program.snapshot = snapshot_of(profiler)
    assert (snapshot.steps, snapshot.iterations) == (program.steps, program.iterations)
    if evaluations_are_known:
        assert program.steps_in("evaluation") == program.evaluated


def vector(envs):
    return gym.vector.SyncVectorEnv([Count] * envs)


CORES = pytest.mark.parametrize("core", ["c", "python"])

"""Delays that are planted in a training with stable-baselines3 are found where they are, with all probes attached."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from itertools import pairwise

import gymnasium
import pytest
import stable_baselines3
import torch
from generic_probes import paths
from sb3_trainings import off_policy, on_policy
from stable_baselines3.common.buffers import ReplayBuffer, RolloutBuffer
from stable_baselines3.common.policies import ActorCriticPolicy

from rlprof import Profiler
from rlprof.probes.registry import Attached, find_probes

DELAY = 10_000_000

planted = Counter()
"""Nanoseconds by operation. Only operations in it are delayed."""
clock = []
"""Sets the clock of the profiler that has a planted one."""


@contextmanager
def delayed(operation):
    if operation in planted:
        planted[operation] += DELAY
        for set_time in clock:
            set_time(planted.total(), 0)
    yield


class SlowEnv(gymnasium.Wrapper):
    def step(self, action):
        with delayed("env_step"):
            return super().step(action)


class SlowPolicy(ActorCriticPolicy):
    def forward(self, obs, deterministic=False):
        with delayed("policy_forward"):
            return super().forward(obs, deterministic)


class SlowBuffer(RolloutBuffer):
    def compute_returns_and_advantage(self, last_values, dones):
        with delayed("advantage"):
            super().compute_returns_and_advantage(last_values, dones)


class SlowReplay(ReplayBuffer):
    def sample(self, batch_size, env=None):
        with delayed("replay_sample"):
            return super().sample(batch_size, env)


class SlowAdam(torch.optim.Adam):
    def step(self, closure=None):
        with delayed("optimizer_step"):
            return super().step(closure)


def ppo():
    return stable_baselines3.PPO(
        SlowPolicy,
        SlowEnv(gymnasium.make("CartPole-v1")),
        policy_kwargs={"optimizer_class": SlowAdam},
        rollout_buffer_class=SlowBuffer,
        n_steps=32,
        batch_size=8,
        n_epochs=4,
        device="cpu",
        seed=1,
    )


def sac():
    return off_policy(stable_baselines3.SAC, replay_buffer_class=SlowReplay)


def profiled(make, steps, **options):
    profiler = Profiler(**options)
    probes = Attached(profiler)
    probes.attach(find_probes())
    try:
        model = make()
        model.learn(steps)  # the first pass through torch's code is slow
        for operation in planted:
            planted[operation] = 0
        if options:
            clock[:] = [profiler.ledger.set_time]
            clock[0](0, 0)
        profiler.enable()
        model.learn(steps)
        profiler.disable()
    finally:
        clock.clear()
        probes.undo()
    snapshot = profiler.snapshot()
    snapshot.check()
    return snapshot


@pytest.mark.long
@pytest.mark.parametrize(
    ("operation", "make", "steps"),
    [
        ("env_step", ppo, 64),
        ("policy_forward", ppo, 64),
        ("optimizer_step", ppo, 64),
        ("advantage", ppo, 640),
        ("replay_sample", sac, 60),
    ],
)
def test_a_planted_delay_is_found_in_its_operation(operation, make, steps):
    """On a clock that only these delays move, so that nothing else on the machine can."""
    planted.clear()
    planted[operation] = 0
    snapshot = profiled(make, steps, clock="fake")
    account = snapshot.account(operation)
    assert account.calls * DELAY == account.ledger_ns == planted[operation] == snapshot.wall_ns > 0


@pytest.mark.long
@pytest.mark.figures
@pytest.mark.parametrize("make", [ppo, sac, lambda: on_policy(stable_baselines3.A2C)])
def test_hardly_anything_of_a_training_is_unattributed(make):
    planted.clear()
    snapshot = profiled(make, 128)
    assert snapshot.unattributed_ns < 0.05 * snapshot.wall_ns


@pytest.mark.long
def test_with_all_probes_nothing_is_timed_inside_itself_and_nothing_counted_twice():
    planted.clear()
    for make, steps, random in ((ppo, 64, 0), (sac, 60, 20)):  # random: steps before learning_starts are prefill
        snapshot = profiled(make, steps)
        found = paths(snapshot)
        for path in found:
            operations = path.split("/")
            assert all(above != below for above, below in pairwise(operations)), path
        assert snapshot.steps == steps - random
        assert snapshot.iterations == snapshot.account("update").calls
        assert set(found) & {"rollout", "update"} == {"rollout", "update"}
        assert not any(path.startswith(("rollout/rollout", "update/rollout", "rollout/update")) for path in found)
        assert found["update/backward"] == found["update/optimizer_step"]

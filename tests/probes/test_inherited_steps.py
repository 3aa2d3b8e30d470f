"""Environments whose `step` comes from a class that is none: a simulator, or EnvPool's mixin."""

from __future__ import annotations

import inspect
import pickle
import warnings

import gymnasium as gym
import numpy as np
import pytest
import torch
from generic_probes import calls, profiled, snapshot_of
from torch import nn

from rlprof import RlprofWarning
from rlprof.probes.gymnasium import PROBE


class Simulator:
    """Knows nothing of gymnasium."""

    def reset(self, *, seed=None, options=None):
        self.time = 0
        return self.time, {}

    def step(self, action):
        self.time += 1
        return self.time, 1.0, self.time % 3 == 0, False, {}

    def render(self):
        return "drawn"


class SimulatorEnv(Simulator, gym.Env):
    observation_space = action_space = gym.spaces.Discrete(4)


class Faster(Simulator):
    def step(self, action):
        self.time += 10
        return super().step(action)


class Pool:
    """As EnvPool: a mixin before gymnasium's own classes, and a step for some of the environments."""

    num_envs = 4

    def reset(self, env_id=None, *, seed=None, options=None):
        return np.zeros(4), {}

    def step(self, action, env_id=None):
        ended = np.arange(len(action)) == 0
        return np.zeros(len(action)), np.ones(len(action)), ended, np.zeros(len(action), dtype=bool), {}


class PoolEnv(Pool, gym.vector.VectorEnv, gym.Env):
    pass


CORES = pytest.mark.parametrize("core", ["c", "python"])


def use(env, steps=6):
    env.reset(seed=1)
    for _ in range(steps):
        result = env.step(0)
    env.render()
    return result


@CORES
def test_a_simulators_step_is_timed_and_counted_once(core):
    with profiled(PROBE, core=core) as profiler:
        use(SimulatorEnv())
        snapshot = snapshot_of(profiler)
    counted = calls(snapshot)
    assert (counted["env_step"], counted["env_reset"], counted["env_render"]) == (6, 1, 1)
    assert (snapshot.steps, snapshot.episodes) == (6, 2)


def test_a_class_that_is_defined_later_is_timed_too():
    with profiled(PROBE) as profiler:

        class Later(Simulator, gym.Env):
            pass

        class Latest(Later):
            def step(self, action):
                return super().step(action)

        use(Later())
        use(Latest())
        snapshot = snapshot_of(profiler)
    assert calls(snapshot)["env_step"] == snapshot.steps == 12


def test_the_simulator_itself_stays_and_afterwards_the_class_inherits_as_before():
    step = Simulator.step
    with profiled(PROBE) as profiler:
        assert vars(Simulator)["step"] is step
        use(Simulator())
        snapshot = snapshot_of(profiler)
        assert inspect.signature(SimulatorEnv.step) == inspect.signature(step)
        assert pickle.loads(pickle.dumps(SimulatorEnv())).reset() == (0, {})
        assert "step" in vars(SimulatorEnv)
    assert "env_step" not in calls(snapshot)
    assert snapshot.steps == 0
    assert not {"step", "reset", "render"} & set(vars(SimulatorEnv))


def test_the_next_class_in_the_method_order_is_still_called():
    class Diamond(SimulatorEnv, Faster):
        pass

    expected = use(Diamond())
    with profiled(PROBE) as profiler:
        assert use(Diamond()) == expected
        snapshot = snapshot_of(profiler)
    assert expected[0] == 66
    assert calls(snapshot)["env_step"] == snapshot.steps == 6


@CORES
def test_a_pool_counts_the_environments_that_it_stepped(core):
    with profiled(PROBE, core=core) as profiler:
        pool = PoolEnv()
        pool.reset()
        pool.step(np.zeros(4))
        pool.step(np.zeros(2), np.array([1, 3]))
        snapshot = snapshot_of(profiler)
    assert calls(snapshot)["env_step"] == 2
    assert (snapshot.steps, snapshot.episodes) == (6, 2)


def learn(times=3):
    net = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(times):
        net(torch.ones(8, 4)).sum().backward()
        optimizer.step()


class Unknown:
    """An environment of no library."""

    def step(self, action):
        return 0, 0.0, False, False, {}


@pytest.mark.filterwarnings("error")
def test_a_training_without_a_step_warns_once():
    with pytest.warns(RlprofWarning, match="no environment step was seen") as warned, profiled() as profiler:
        for _ in range(3):
            Unknown().step(0)
            learn()
        profiler.disable()
        profiler.enable()
    assert len(warned) == 1


def test_a_training_with_steps_is_not_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with profiled():
            env = SimulatorEnv()
            env.reset()
            env.step(0)
            learn()

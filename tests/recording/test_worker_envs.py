"""Vector environments of the libraries, in worker processes: they return the same as without rlprof, and each is a
lane."""

from __future__ import annotations

import pytest
from recording.worker_trainings import run_training

from rlprof.ledger import profiler as module

pytestmark = pytest.mark.skipif(module._core is None, reason="only the C core shares")


@pytest.mark.long
@pytest.mark.parametrize("vector", ["gymnasium", "stable_baselines3"])
def test_environments_of_the_libraries(vector, tmp_path):
    pytest.importorskip("gymnasium")
    pytest.importorskip(vector)
    head = """
import sys, time
import gymnasium, numpy
from rlprof import get_profiler, profile, record

class Slow(gymnasium.Wrapper):
    def __init__(self, env, seconds):
        super().__init__(env)
        self.seconds = seconds

    def step(self, action):
        with profile("env_step"):
            time.sleep(self.seconds)
            return self.env.step(action)

def make(seconds):
    return lambda: Slow(gymnasium.make("CartPole-v1"), seconds)

def rewards(vector, steps=60):
    makers = [make(0.012 if i == 1 else 0.003) for i in range(4)]
    total = []
    if vector == "gymnasium":
        envs = gymnasium.vector.AsyncVectorEnv(makers, context="fork")
        envs.reset(seed=3)
    else:
        from stable_baselines3.common.vec_env import SubprocVecEnv
        envs = SubprocVecEnv(makers, start_method="fork")
        envs.seed(3)
        envs.reset()
    for i in range(steps):
        envs.step_async(numpy.array([i % 2] * 4))
        with profile("env_wait", wait=True):
            observations, *_ = envs.step_wait()
        total.append(float(observations.sum()))
    envs.close()
    return total
"""
    main = f"""
alone = rewards({vector!r})
with record("run"):
    recorded = rewards({vector!r})
print(alone == recorded)
"""
    out, facts = run_training(tmp_path, main, head)
    assert out == "True\n"
    step = facts.operation("env_step")
    assert len(step.lanes) == 4
    assert all(50 < lane.calls <= 60 for lane in step.lanes)  # an episode that has ended is reset instead
    slow = max(step.lanes, key=lambda lane: lane.ledger_ns)
    assert step.ledger_ns > 0.8 * slow.calls * 12e6  # the driver waits at least as long as the slowest one sleeps
    assert slow.ledger_ns > 2 * sorted(lane.ledger_ns for lane in step.lanes)[-2]

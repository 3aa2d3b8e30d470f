"""One environment that is slower than the others, in threads and in worker processes."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from advised import actors, amdahl, enter_all, given, rest, train
from sessions import facts_of, rlprof

from rlprof.analysis.advice.straggler_env import straggler_env


def lockstep(delay, steps=50):
    """Four environments, each with a thread of its own, that all wait for the slowest: delay(env, step) seconds."""

    def program(profiler):
        with actors(4) as threads:
            for step in range(steps):
                with profiler.profile("collect", wait=True):
                    spans = enter_all(profiler, threads)
                    passed = 0.0
                    for env in sorted(range(4), key=lambda env: delay(env, step)):
                        rest(delay(env, step) - passed)
                        passed = delay(env, step)
                        threads[env].exit(spans[env])
                profiler.add_steps(4)

    return program


def test_a_straggler_is_named_with_the_time_that_it_costs(tmp_path):
    facts = train(tmp_path, lockstep(lambda env, _: 0.012 if env == 2 else 0.003))
    finding = given(straggler_env(facts), "straggler_env")
    assert finding.operations == ("env_step", "collect")
    assert "env-2" in finding.cause
    # 9 of 12 ms per step. The ledger also gives the straggler its quarter of the first 3 ms, which is no loss.
    assert finding.gain.low < finding.gain.estimate < finding.gain.high
    assert finding.gain.estimate == pytest.approx(amdahl(9 / 12))
    assert any("50 of its 50 calls" in sentence for sentence in finding.evidence)


VECTOR = """
import sys, time
import gymnasium as gym

class Env(gym.Env):
    observation_space, action_space = gym.spaces.Discrete(2), gym.spaces.Discrete(2)

    def __init__(self, number):
        self.seconds = float(sys.argv[3]) if number == 2 else float(sys.argv[2])

    def reset(self, *, seed=None, options=None):
        return 0, {}

    def step(self, action):
        time.sleep(self.seconds)
        return 0, 0.0, False, False, {}

def make(number):
    return lambda: Env(number)

if __name__ == "__main__":
    makers = [make(number) for number in range(4)]
    if sys.argv[1] == "gymnasium":
        envs = gym.vector.AsyncVectorEnv(makers, context="fork")
    else:
        from stable_baselines3.common.vec_env import SubprocVecEnv
        envs = SubprocVecEnv(makers, start_method="fork")
    envs.reset()
    for _ in range(30):
        envs.step([0] * 4)
    envs.close()
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("library", "third", "usual", "slow"),
    [
        ("gymnasium", "Worker<AsyncVectorEnv>-2", 0.005, 0.08),
        ("stable-baselines3", "ForkProcess-3", 0.005, 0.08),
        pytest.param("gymnasium", "", 0.02, 0.02, id="all alike"),
    ],
)
def test_workers_are_compared_with_workers_and_not_with_the_driver_that_waits(tmp_path, library, third, usual, slow):
    """The driver's env_step takes as long as that of the slowest worker, in every vector environment."""
    (tmp_path / "train.py").write_text(VECTOR)
    seconds = [str(usual), str(slow)]
    rlprof("run", "--quiet", "--dir", "runs", "train.py", library, *seconds, cwd=tmp_path)
    (folder,) = (tmp_path / "runs").iterdir()
    facts = facts_of(folder)
    lanes = facts.operation("env_step").lanes
    assert sorted((lane.kind, lane.calls) for lane in lanes) == [("process", 30)] * 4 + [("thread", 30)]
    # The workers' start takes minutes on a busy machine: shares are of the time in which environments were stepped.
    stepping = next(lane.busy_ns for lane in lanes if lane.kind == "thread")
    finding = straggler_env(replace(facts, breakdown=replace(facts.breakdown, training_ns=stepping)))
    if usual == slow:
        assert finding is None
        return
    assert third in given(finding, "straggler_env").cause
    assert "on the 3 others" in finding.evidence[0]


@pytest.mark.parametrize(
    "delay",
    [
        pytest.param(lambda *_: 0.005, id="all alike"),
        pytest.param(lambda env, step: 0.6 if (env, step) == (2, 25) else 0.003, id="one long hold-up"),
        pytest.param(lambda env, step: 0.012 if step % 4 == env else 0.003, id="each in its turn"),
    ],
)
def test_without_one_lane_that_is_always_slow_there_is_no_straggler(tmp_path, delay):
    assert straggler_env(train(tmp_path, lockstep(delay))) is None


def test_a_slow_environment_that_moves_between_the_threads_of_a_pool_is_no_slow_lane(tmp_path):
    """A pool hands tasks to whichever thread is free."""
    chance = random.Random(0)
    slow = [chance.randrange(4) for _ in range(50)]
    assert straggler_env(train(tmp_path, lockstep(lambda env, step: 0.012 if env == slow[step] else 0.003))) is None

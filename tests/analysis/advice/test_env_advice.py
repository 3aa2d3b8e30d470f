"""Rules about environments, on trainings whose faults are planted."""

from __future__ import annotations

import random
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import pytest
from advised import given, on_cores, rest, share, spin, train, work
from fakes import Actor
from sessions import facts_of, rlprof, sample

from rlprof.analysis.advice.idle_waiting import idle_waiting
from rlprof.analysis.advice.reset_storm import reset_storm
from rlprof.analysis.advice.single_core_env import single_core_env
from rlprof.analysis.advice.straggler_env import straggler_env


def serial(step, steps=60):
    """A training that steps one environment after the other on its own thread."""

    def program(profiler):
        for _ in range(3):
            profiler.iteration()
            for _ in range(steps // 3):
                with profiler.profile("env_step"):
                    step()
                profiler.add_steps(1)
            work(profiler, "update", 0.01)

    return program


def test_environments_that_compute_on_one_of_four_cores_should_be_stepped_in_parallel(tmp_path):
    facts = on_cores(train(tmp_path, serial(lambda: spin(0.004))), 4)
    advice = given(single_core_env(facts), "single_core_env")
    envs = share(facts, "env_step")
    assert advice.operations == ("env_step",)
    assert "of 4 cores" in advice.title
    assert f"{100 * envs:.1f}%" in advice.title
    assert advice.gain == pytest.approx((1.0, 1 / (1 - envs + envs / 4)))


@pytest.mark.parametrize(("step", "cores"), [(rest, 4), (spin, 1)], ids=["waiting for a server", "one core"])
def test_environments_that_wait_or_have_one_core_need_no_other(tmp_path, step, cores):
    assert single_core_env(on_cores(train(tmp_path, serial(lambda: step(0.004))), cores)) is None


@contextmanager
def actors(count):
    """Threads that do one thing at a time, when requested."""
    with ExitStack() as stack:
        made = [Actor(f"env-{number}") for number in range(count)]
        for actor in made:
            stack.callback(actor.end)
        yield made


def enter_all(profiler, threads):
    """All threads step an environment."""
    spans = [profiler.profile("env_step") for _ in threads]
    for thread, span in zip(threads, spans):
        thread.enter(span)
    return spans


def test_environments_in_threads_that_share_one_core_are_found(tmp_path):
    def program(profiler):
        with actors(4) as threads:
            for _ in range(20):
                with profiler.profile("collect", wait=True):
                    spans = enter_all(profiler, threads)
                    rest(0.012)  # of 16 ms, each has the core for four
                    spin(0.004)
                    for thread, span in zip(threads, spans):
                        thread.exit(span)
                profiler.add_steps(4)

    facts = on_cores(train(tmp_path, program), 4)
    advice = given(single_core_env(facts), "single_core_env")
    assert "4 threads" in advice.action


def test_child_processes_that_work_are_taken_for_environments_in_parallel(tmp_path):
    program, samples = serial(lambda: spin(0.01), steps=120), [sample(1, cpu=100.0, children_cpu=90.0)]
    assert single_core_env(on_cores(train(tmp_path, program), 4)) is not None
    assert single_core_env(on_cores(train(tmp_path, program, samples=samples), 4)) is None


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
    advice = given(straggler_env(facts), "straggler_env")
    assert advice.operations == ("env_step", "collect")
    assert advice.title.startswith("env-2 ")
    lost = 1 - 1 / advice.gain[1]
    # 9 of 12 ms per step. The ledger also gives the straggler its quarter of the first 3 ms, which is no loss.
    assert lost == pytest.approx(9 / 12)
    assert "50 of its 50 calls" in advice.evidence[1]


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
    # A start takes minutes on a busy machine: shares are of the time in which environments were stepped.
    stepping = next(lane.busy_ns for lane in lanes if lane.kind == "thread")
    advice = straggler_env(replace(facts, breakdown=replace(facts.breakdown, wall_ns=stepping)))
    if usual == slow:
        assert advice is None
        return
    assert given(advice, "straggler_env").title.startswith(f"{third} ")
    assert "on the 3 others" in advice.evidence[0]


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


def episodes(length, reset, first=0.0, steps=120, iterations=4):
    """A training with a reset every few steps. The first reset takes some seconds longer."""

    def program(profiler):
        done = 0
        work(profiler, "env_reset", first + reset)
        for _ in range(iterations):
            profiler.iteration()
            for _ in range(steps // iterations):
                work(profiler, "env_step", 0.002)
                profiler.add_steps(1)
                done += 1
                if done % length == 0:
                    work(profiler, "env_reset", reset)
            work(profiler, "update", 0.01)

    return program


def test_short_episodes_with_slow_resets_are_a_storm(tmp_path):
    facts = train(tmp_path, episodes(length=4, reset=0.01))
    advice = given(reset_storm(facts), "reset_storm")
    assert advice.operations == ("env_reset",)
    assert advice.evidence[0].startswith("31 resets for 120 env steps, one every 3.9")
    assert "early" in advice.action
    # Of the iterations after the first: 23 resets of 10 ms, 90 steps of 2 ms and 3 updates of 10 ms.
    assert advice.gain[1] == pytest.approx(1 / (1 - 230 / 440))


def test_slow_resets_of_long_episodes_should_become_cheaper(tmp_path):
    advice = given(reset_storm(train(tmp_path, episodes(length=40, reset=0.08, steps=240))), "reset_storm")
    assert advice.action.startswith("Make the reset cheaper")


@pytest.mark.parametrize("iterations", [1, 4])
def test_a_slow_first_reset_alone_is_no_storm(tmp_path, iterations):
    facts = train(tmp_path, episodes(length=20, reset=0.001, first=0.4, iterations=iterations))
    assert share(facts, "env_reset") > 0.2
    assert reset_storm(facts) is None


def test_cheap_resets_are_no_storm(tmp_path):
    assert reset_storm(train(tmp_path, episodes(length=4, reset=0.0002))) is None


def waiting(works):
    """A training that waits 10 ms at a time for a thread, which works or sleeps meanwhile."""

    def program(profiler):
        with actors(1) as (thread,):
            for _ in range(20):
                span = profiler.profile("env_step")
                with profiler.profile("env_wait", wait=True):
                    if works:
                        thread.enter(span)
                    rest(0.01)
                    if works:
                        thread.exit(span)
                work(profiler, "update", 0.002)

    return program


def test_waiting_is_idle_while_no_lane_works(tmp_path):
    assert idle_waiting(train(tmp_path, waiting(works=True))) is None
    facts = train(tmp_path, waiting(works=False))
    advice = given(idle_waiting(facts), "idle_waiting")
    assert advice.operations == ("env_wait",)
    assert advice.gain[1] == pytest.approx(1 / (1 - share(facts, "env_wait"))) == pytest.approx(6)

"""Environments that are stepped one after the other while cores are free."""

from __future__ import annotations

import pytest
from advised import actors, amdahl, at, enter_all, given, on_cores, rest, share, spin, train, with_lines, work
from sessions import sample

from rlprof.analysis.advice.single_core_env import single_core_env


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
    envs = share(facts, "env_step")
    finding = given(single_core_env(facts), "single_core_env", share=envs)
    assert finding.operations == ("env_step",)
    assert "of 4 cores" in finding.cause
    assert f"{100 * envs:.1f}%" in finding.cause
    # Four workers at best, and they never step four times as fast for nothing.
    assert amdahl(envs, 1.0) < finding.gain.low < finding.gain.estimate <= amdahl(envs, 1 / 4)


def test_the_hottest_line_of_the_environment_is_its_place(tmp_path):
    facts = on_cores(train(tmp_path, serial(lambda: spin(0.004))), 4)
    lines = [at("env.py:30", "self.world.step()", 0.7, "step"), at("env.py:31", "return obs", 0.3, "step")]
    assert given(single_core_env(with_lines(facts, {"env_step": lines})), "single_core_env").place.where == "env.py:30"


@pytest.mark.parametrize(("step", "cores"), [(rest, 4), (spin, 1)], ids=["waiting for a server", "one core"])
def test_environments_that_wait_or_have_one_core_need_no_other(tmp_path, step, cores):
    assert single_core_env(on_cores(train(tmp_path, serial(lambda: step(0.004))), cores)) is None


def test_steps_that_are_shorter_than_a_message_to_a_worker_should_stay_where_they_are(tmp_path):
    assert single_core_env(on_cores(train(tmp_path, serial(lambda: spin(0.00005), steps=6_000)), 4)) is None


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
    assert "4 threads" in given(single_core_env(facts), "single_core_env").change


def test_child_processes_that_work_are_taken_for_environments_in_parallel(tmp_path):
    program, samples = serial(lambda: spin(0.01), steps=120), [sample(1, cpu=100.0, children_cpu=90.0)]
    assert single_core_env(on_cores(train(tmp_path, program), 4)) is not None
    assert single_core_env(on_cores(train(tmp_path, program, samples=samples), 4)) is None

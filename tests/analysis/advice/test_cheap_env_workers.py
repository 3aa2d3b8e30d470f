"""Worker processes for environments that are cheaper than sending actions to them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from advised import at, given, train, with_lines, work

from rlprof.analysis.advice.cheap_env_workers import cheap_env_workers
from rlprof.analysis.operations import OnLane
from rlprof.session.evidence import Environment, Evidence

ENVS, STEPS = 8, 400


@pytest.fixture
def facts(tmp_path):
    """Per step 1 ms for all environments, and 1 ms of policy."""

    def program(profiler):
        for _ in range(10):
            profiler.iteration()
            for _ in range(STEPS // 10):
                work(profiler, "env_step", 0.001)
                work(profiler, "policy_forward", 0.001)
                profiler.add_steps(ENVS)

    return train(tmp_path, program)


def in_workers(facts, step_us, envs=ENVS, kind="workers"):
    """As if each of the workers had needed this long for a step of its environment."""
    busy = round(step_us * 1_000 * STEPS)
    lanes = tuple(OnLane(f"Worker-{i}", "process", STEPS, busy, busy, 0) for i in range(envs))
    moved = tuple(
        replace(item, lanes=(*item.lanes, *lanes)) if item.operation == "env_step" else item
        for item in facts.operations
    )
    environments = (Environment(("AsyncVectorEnv",), kind, envs, None),)
    return replace(facts, operations=moved, evidence=Evidence(environments=environments))


def test_workers_that_mostly_send_are_found(facts):
    finding = given(cheap_env_workers(in_workers(facts, 10)), "cheap_env_workers", share=0.5)
    assert "A step of 8 environments is work for 80.0 us, but takes 1.00 ms in worker processes: 50.0%" in finding.cause
    assert finding.gain.estimate == pytest.approx(1 / (0.5 + 0.5 * 0.08 * 0.5), rel=0.02)


@pytest.mark.parametrize("changed", [{"step_us": 130}, {"step_us": 500}, {"step_us": 10, "kind": "sync"}])
def test_workers_that_compute_are_worth_it(facts, changed):
    assert cheap_env_workers(in_workers(facts, **changed)) is None


def test_a_single_worker_isolates_and_does_not_save(facts):
    assert cheap_env_workers(in_workers(facts, 10, envs=1)) is None


def test_resets_of_workers_are_work_of_a_step(facts):
    """10 us per step, and as much again as a worker that is worth it in resets."""
    found = in_workers(facts, 10)
    busy = round(120 * 1_000 * STEPS)
    resets = replace(
        next(item for item in found.operations if item.operation == "env_step"),
        operation="env_reset",
        lanes=tuple(OnLane(f"Worker-{i}", "process", STEPS // 20, busy, busy, 0) for i in range(ENVS)),
    )
    assert cheap_env_workers(found) is not None
    assert cheap_env_workers(replace(found, operations=(*found.operations, resets))) is None


def test_a_wrapper_around_the_vector_is_no_communication(facts):
    """60 % of the steps are a line of the user's in the training's own process."""
    wrapper = at("train.py:35", "self.mean = np.concatenate(self.history).mean(0)", 0.6, "Centre.step")
    vector = at(
        "train.py:34", "obs = self.venv.step_wait()", 0.4, "Centre.step", ("gymnasium.vector.async_vector_env:f",)
    )
    found = with_lines(in_workers(facts, 10), {"env_step": [wrapper, vector]})
    finding = given(cheap_env_workers(found), "cheap_env_workers", share=0.2)
    assert finding.place.where == "train.py:34"
    assert "takes 400 us in worker processes: 20.0%" in finding.cause

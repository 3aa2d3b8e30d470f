"""A teacher that is called for each environment."""

from __future__ import annotations

import pytest
from advised import given, share, train, work

from rlprof.analysis.advice.teacher_one_by_one import teacher_one_by_one


def teaching(calls, seconds, taught=40, steps=40):
    """Eight environments. The teacher is called several times per step and switched off after `taught` steps."""

    def program(profiler):
        for step in range(steps):
            profiler.iteration()
            work(profiler, "policy_forward", 0.002)
            if step < taught:
                with profiler.profile("teacher_total", category="teacher"):
                    for _ in range(calls):
                        work(profiler, "agent_calls", seconds, category="teacher")
            work(profiler, "env_step", 0.002)
            profiler.add_steps(8)

    return program


@pytest.mark.parametrize(("taught", "called"), [(40, 320), (15, 120)])
def test_a_teacher_called_for_each_environment_is_found_by_the_policys_calls(tmp_path, taught, called):
    facts = train(tmp_path, teaching(calls=8, seconds=0.001, taught=taught))
    # The gain is about the iterations after the first three.
    spent = (taught - 3) * 8
    finding = given(teacher_one_by_one(facts), "teacher_one_by_one", share=spent / (spent + 37 * 4))
    assert finding.operations == ("agent_calls", "teacher_total")
    assert "8 times per call of policy_forward" in finding.cause
    assert f"agent_calls has {called} calls, policy_forward has 40" in finding.evidence[0]
    assert share(facts, "agent_calls", "teacher_total") == pytest.approx(taught * 8 / (taught * 8 + 160))


def test_a_teacher_that_answers_for_all_at_once_is_fine(tmp_path):
    assert teacher_one_by_one(train(tmp_path, teaching(calls=1, seconds=0.008))) is None


def test_a_teacher_that_is_called_for_each_environment_is_fine_if_it_takes_no_time(tmp_path):
    assert teacher_one_by_one(train(tmp_path, teaching(calls=8, seconds=0.00001))) is None

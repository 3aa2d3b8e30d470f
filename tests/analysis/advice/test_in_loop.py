"""Evaluation, checkpoints, logging and rendering inside the training loop."""

from __future__ import annotations

import pytest
from advised import at, given, share, spin, train, with_lines, work

from rlprof.analysis.advice.in_loop import in_loop

RULE_OF = {
    "logging": "logging_in_loop",
    "callback": "logging_in_loop",
    "evaluation": "evaluation_too_often",
    "checkpoint": "checkpoint_too_often",
    "env_render": "rendering",
    "image_resize": "rendering",
}


def looping(calls, iterations=20, operation="logging", once=0.0, when=19):
    """Some calls of 4 ms per iteration, and in one iteration a call of `once` seconds."""

    def program(profiler):
        for number in range(iterations):
            profiler.iteration()
            for _ in range(10):
                work(profiler, "env_step", 0.001)
            for _ in range(calls):
                with profiler.profile(operation):
                    spin(0.002)
                    work(profiler, "policy_forward", 0.002)
            if once and number == when:
                work(profiler, operation, once)

    return program


@pytest.mark.parametrize("operation", RULE_OF)
def test_an_operation_of_each_iteration_is_named_including_what_it_calls(tmp_path, operation):
    facts = train(tmp_path, looping(calls=3, operation=operation))
    (found,) = in_loop(facts)
    taken = share(facts, operation, "policy_forward")
    finding = given(found, RULE_OF[operation], share=taken)
    assert taken == pytest.approx(12 / 22)
    assert finding.operations == (operation,)
    assert "3 per iteration" in finding.evidence[0]
    assert f"{100 * taken:.1f}%" in finding.cause


def test_an_operation_of_each_step_is_named_even_without_iterations(tmp_path):
    def program(profiler):
        for _ in range(100):
            work(profiler, "env_step", 0.002)
            work(profiler, "telemetry", 0.002)

    (found,) = in_loop(train(tmp_path, program))
    finding = given(found, "logging_in_loop", share=0.5)
    assert "100 calls, 1 time per call of env_step" in finding.evidence[0]


def test_every_so_many_iterations_is_told_as_such(tmp_path):
    def program(profiler):
        for number in range(40):
            profiler.iteration()
            work(profiler, "env_step", 0.01)
            if number % 5 == 0:
                work(profiler, "checkpoint", 0.05)

    (found,) = in_loop(train(tmp_path, program))
    assert "once every 5 iterations" in given(found, "checkpoint_too_often", share=0.5).cause


def test_its_place_is_the_line_in_the_outermost_loop(tmp_path):
    facts = train(tmp_path, looping(calls=3, operation="evaluation"))
    (found,) = in_loop(with_lines(facts, {"evaluation": [at("train.py:40", "evaluate(policy)", 1.0)]}))
    assert found.place.where == "train.py:40"
    assert any("train.py:40" in sentence for sentence in found.evidence)


@pytest.mark.parametrize("operation", RULE_OF)
@pytest.mark.parametrize("when", [10, 19])
def test_a_single_large_one_is_not_in_the_loop(tmp_path, operation, when):
    facts = train(tmp_path, looping(calls=0, operation=operation, once=0.2, when=when))
    # At the end it is no part of the training at all.
    assert share(facts, operation) == pytest.approx(0.5 if when == 10 else 0.0)
    assert in_loop(facts) == []


@pytest.mark.parametrize("operation", RULE_OF)
def test_a_little_in_each_iteration_is_fine(tmp_path, operation):
    def program(profiler):
        for _ in range(20):
            profiler.iteration()
            work(profiler, "env_step", 0.01)
            work(profiler, operation, 0.0001)

    assert in_loop(train(tmp_path, program)) == []

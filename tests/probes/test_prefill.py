"""Loops that no framework's probe knows: random steps before the first update are prefill, and are not counted."""

from __future__ import annotations

import pytest
from generic_probes import calls
from own_loop import CORES, Count, recorded, vector


@CORES
@pytest.mark.parametrize("envs", [0, 3])
def test_random_steps_before_the_first_update_are_prefill(envs, core):
    with recorded(core) as program:
        training, evaluation = (vector(envs) if envs else Count()), Count()
        program.prefill(training, 30, envs or 1)
        for step in range(20):
            program.collect(training, 1, envs or 1)
            program.learn(passes=1)
            if step % 8 == 7:
                program.evaluate(evaluation)
    assert program.steps_in("prefill") * (envs or 1) == program.prefilled
    assert calls(program.snapshot)["prefill"] == 1
    assert calls(program.snapshot)["rollout"] == calls(program.snapshot)["update"] == 20
    assert program.snapshot.account("prefill").category == "system"


@pytest.mark.parametrize("collected", [1, 10])
def test_a_test_between_prefill_and_training_is_an_evaluation(collected):
    with recorded() as program:
        training, evaluation = Count(), Count()
        program.prefill(training, 30)
        program.evaluate(evaluation)
        for _ in range(5):
            program.train(training, collected)
    assert program.steps_in("prefill") == program.prefilled


def test_a_policy_that_acts_now_and_then_before_it_learns_still_prefills():
    """Epsilon-greedy: the training begins with the step after which it first learns."""
    with recorded() as program:
        training = Count()
        for step in range(60):
            program.step(training, act=step > 3 and step % 3 == 0)
            if step >= 40:
                program.steps += 1
                program.learn(passes=1)
    assert program.steps_in("prefill") + program.steps_in("rollout") == 60
    assert program.steps_in("rollout") == 20, "the first one that a forward pass chose looked like the training"


@pytest.mark.parametrize("random", [(), (0,), (2,), (0, 1, 2, 3)])
def test_random_steps_of_the_training_that_follow_a_prefill_are_counted(random):
    """Epsilon-greedy, one update every fourth step. random: which of the first four steps are."""
    with recorded() as program:
        training = Count()
        program.prefill(training, 30)
        for step in range(20):
            program.step(training, act=step not in random)
            program.steps += 1
            if step % 4 == 3:
                program.learn(passes=1)


@CORES
def test_a_forward_pass_for_a_list_of_environments_serves_each_of_them(core):
    """As tianshou does: random steps, a test, then steps of which each batch is chosen at once."""
    with recorded(core) as program:
        training, evaluation = [Count(5 + i) for i in range(3)], [Count(4) for _ in range(2)]

        def step_all(envs):
            for env in envs:
                if program.ended[env]:
                    program.reset(env)
            program.act(len(envs))
            for env in envs:
                program.step(env, act=False)

        for env in (*training, *evaluation):
            program.reset(env)
        for _ in range(10):
            for env in training:
                program.prefill(env, 1)
        for _ in range(4):
            for env in evaluation:
                program.reset(env)
            for _ in range(4):
                step_all(evaluation)
                program.evaluated += 2
            for _ in range(3):
                step_all(training)
                program.steps += 3
            program.learn()
    assert program.steps_in("prefill") == program.prefilled
    assert program.steps_in("rollout") == program.steps


def test_a_first_rollout_whose_actions_a_network_chose_is_training():
    with recorded() as program:
        training = Count()
        for _ in range(3):
            for _ in range(4):
                program.collect(training, 1)
                for _ in range(3):  # the action is repeated
                    program.step(training, act=False)
                    program.steps += 1
            program.learn()
    assert "prefill" not in calls(program.snapshot)


def test_random_steps_that_are_never_learned_from_are_counted():
    with recorded() as program:
        training = Count()
        for _ in range(20):
            program.step(training, act=False)
            program.steps += 1


def test_a_policy_that_no_probe_sees_has_no_prefill():
    with recorded() as program:
        training = Count()
        for _ in range(4):
            for _ in range(10):
                program.step(training, act=False)
                program.steps += 1
            program.learn()

"""Loops that no framework's probe knows: evaluations are not training, whatever the loop looks like."""

from __future__ import annotations

import pytest
from generic_probes import calls, places, profiled, snapshot_of
from own_loop import CORES, Count, Program, Wrapped, recorded, vector

from rlprof.probes import phases


@CORES
@pytest.mark.parametrize("envs", [0, 4])
def test_a_separate_environment_is_evaluated_with_every_few_iterations(envs, core):
    with recorded(core) as program:
        training, evaluation = (vector(envs) if envs else Wrapped(Count())), Count()
        for iteration in range(6):
            program.train(training, 10, envs or 1)
            if iteration % 2:
                program.evaluate(evaluation)
    assert program.steps_in("rollout") == 60
    assert calls(program.snapshot)["evaluation"] == 3
    assert calls(program.snapshot)["rollout"] == calls(program.snapshot)["update"] == 6
    assert program.snapshot.account("evaluation").category == "system"


@pytest.mark.parametrize("often", [1, 2])
def test_an_environment_that_is_made_for_each_evaluation_is_no_training(often):
    with recorded() as program:
        training = Wrapped(Count())
        for iteration in range(6):
            program.train(training, 10)
            if iteration % often == 0:
                program.evaluate(Wrapped(Count()))


@pytest.mark.parametrize("gone", [True, False])
def test_the_last_evaluation_opens_no_iteration(gone):
    with recorded() as program:
        training = vector(2)
        for _ in range(3):
            program.train(training, 10, 2)
        if gone:
            del training
            program.ended.clear()
        program.evaluate(Count())


@CORES
def test_an_evaluation_before_the_training_is_no_training(core):
    with recorded(core) as program:
        training, evaluation = Count(), Count()
        program.evaluate(evaluation)
        for _ in range(3):
            program.train(training, 10)
            program.evaluate(evaluation)
    assert program.steps_in("rollout") == program.steps


def test_an_evaluation_in_the_middle_of_a_rollout_is_no_training():
    with recorded() as program:
        training, evaluation = Count(), Count()
        for iteration in range(4):
            program.collect(training, 9)
            if iteration:
                program.evaluate(evaluation)
                program.evaluate(evaluation)
            program.train(training, 3)


def test_an_evaluation_that_interrupts_the_very_first_rollout_is_not_counted():
    with recorded(evaluations_are_known=False) as program:
        training, evaluation = Count(), Count()
        for _ in range(3):
            program.collect(training, 9)
            program.evaluate(evaluation)
            program.train(training, 3)


@CORES
def test_environments_that_are_all_reset_at_the_start_are_distinguished(core):
    with recorded(core) as program:
        training, evaluation = Count(), Count()
        program.reset(training)
        program.reset(evaluation)
        for _ in range(4):
            program.train(training, 10)
            program.evaluate(evaluation)


@CORES
@pytest.mark.parametrize("first", [True, False])
def test_evaluation_environments_that_are_stepped_alternately_are_no_training(first, core):
    """As tianshou does: several environments each, one after the other, and a test before the training."""
    with recorded(core) as program:
        training, evaluation = [Count(5 + i) for i in range(3)], [Count(4) for _ in range(3)]

        def evaluate():
            for env in evaluation:
                program.reset(env)
            for _ in range(4):
                for env in evaluation:
                    program.step(env)
                    program.evaluated += 1

        for env in training:
            program.reset(env)
        if first:
            evaluate()
        for _ in range(4):
            for _ in range(6):
                for env in training:
                    program.train(env, 1)
            evaluate()


@pytest.mark.parametrize("eager", [True, False])
def test_environments_that_are_collected_from_alternately_all_train(eager):
    with recorded() as program:
        training = [Count(5 + i) for i in range(3)]
        if eager:
            for env in training:
                program.reset(env)
        for _ in range(4):
            for _ in range(6):
                for env in training:
                    program.train(env, 1)
    assert "evaluation" not in calls(program.snapshot)


def test_environments_that_give_an_episode_each_all_train():
    with recorded() as program:
        training = [Count(5 + i) for i in range(3)]
        for _ in range(4):
            for env in training:
                program.episode(env)
            program.learn()
    assert "evaluation" not in calls(program.snapshot)
    assert program.steps_in("rollout") == program.steps


def test_an_environment_that_is_made_for_each_episode_trains():
    with recorded() as program:
        for _ in range(5):
            program.episode(Wrapped(Count()))
            program.learn()
    assert "evaluation" not in calls(program.snapshot)


@CORES
def test_two_tasks_that_alternate_both_train(core):
    with recorded(core) as program:
        tasks = [Count(5), Count(6)]
        for iteration in range(6):
            program.train(tasks[iteration % 2], 10)
    assert "evaluation" not in calls(program.snapshot)
    assert calls(program.snapshot)["rollout"] == 6


def test_a_task_that_comes_after_an_evaluation_trains():
    with recorded(evaluations_are_known=False) as program:
        tasks, evaluation = [Count(5), Count(6)], Count()
        for iteration in range(8):
            program.train(tasks[iteration >= 4], 10)
            program.evaluate(evaluation)


def test_the_same_environment_behind_its_wrapper_is_the_same():
    with recorded() as program:
        bare = Count()
        for env in (Wrapped(bare), bare, Wrapped(bare)):
            program.train(env, 10)
    assert "evaluation" not in calls(program.snapshot)


def test_an_evaluation_in_the_training_environment_itself_counts_as_training():
    """Its steps are counted. What matters is that the phases and iterations go on."""
    with recorded(evaluations_are_known=False) as program:
        training = Count()
        for _ in range(3):
            program.train(training, 10)
            program.evaluate(training, episodes=1)
        program.steps += program.evaluated


def test_steps_after_the_last_update_are_counted_and_open_no_iteration():
    with recorded() as program:
        training = Count()
        for _ in range(3):
            program.train(training, 10)
        program.collect(training, 4)


def test_evaluation_prefill_and_training_have_their_own_places():
    with recorded() as program:
        training, evaluation = Count(), Count()
        program.evaluate(evaluation)
        program.prefill(training, 30)
        for _ in range(5):
            program.train(training, 3)
            program.evaluate(evaluation)
    assert {"evaluation/env_step", "prefill/env_step", "rollout/env_step"} <= places(program.snapshot)


@CORES
@pytest.mark.parametrize("evaluated", [True, False])
def test_what_follows_the_last_phase_is_no_part_of_it(evaluated, core):
    with profiled(core=core, clock="fake") as profiler:
        program = Program()
        training, evaluation = Count(), Count()
        for _ in range(3):
            program.train(training, 10)
        if evaluated:
            program.evaluate(evaluation)
        profiler.ledger.set_time(2_000, 0)  # as a plot would take
        phases.end()
    snapshot = snapshot_of(profiler)
    assert snapshot.account("after_training").ledger_ns == 2_000
    assert (snapshot.steps, snapshot.iterations) == (program.steps, program.iterations)
    assert snapshot.account("evaluation").ledger_ns == snapshot.account("update").ledger_ns == 0

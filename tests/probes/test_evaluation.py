"""Loops that no framework's probe knows: evaluation and prefill are no training, whatever the loop looks like.

Every program here counts its own steps, iterations and evaluations; rlprof must come to the same figures.
"""

from __future__ import annotations

import gymnasium as gym
import pytest
import torch
from generic_probes import calls, places, profiled, snapshot_of
from torch import nn

from rlprof.probes import phases


class Count(gym.Env):
    """Its episodes have a fixed length."""

    observation_space = gym.spaces.Box(-1, 1, (4,))
    action_space = gym.spaces.Discrete(2)

    def __init__(self, length=7):
        self.length = length
        self.done = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.done = 0
        return self.observation_space.sample() * 0, {}

    def step(self, action):
        self.done += 1
        return self.observation_space.sample() * 0, 1.0, self.done >= self.length, False, {}


class Wrapped(gym.Wrapper):
    pass


class Program:
    """A training, with its own account of what it did."""

    def __init__(self):
        self.net = nn.Linear(4, 2)
        self.critic = nn.Linear(4, 1)
        self.optimizer = torch.optim.SGD([*self.net.parameters(), *self.critic.parameters()], lr=0.01)
        self.steps = self.iterations = self.evaluated = self.prefilled = 0
        self.ended = {}

    def reset(self, env):
        env.reset()
        self.ended[env] = False

    def act(self, envs=1):
        with torch.no_grad():
            self.net(torch.ones(envs, 4))
            self.critic(torch.ones(envs, 4))

    def step(self, env, envs=1, act=True):
        """One step, with a reset before it where the episode has ended."""
        if self.ended.get(env, True):
            self.reset(env)
        if act:
            self.act(envs)
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        self.ended[env] = envs == 1 and bool(terminated or truncated)

    def collect(self, env, steps, envs=1):
        for _ in range(steps):
            self.step(env, envs)
            self.steps += envs

    def prefill(self, env, steps, envs=1):
        for _ in range(steps):
            self.step(env, envs, act=False)
            self.prefilled += envs

    def learn(self, batch=16, passes=2):
        self.iterations += 1
        for _ in range(passes):
            (self.net(torch.ones(batch, 4)).sum() + self.critic(torch.ones(batch, 4)).sum()).backward()
            self.optimizer.step()
            self.optimizer.zero_grad()

    def evaluate(self, env, episodes=2):
        for _ in range(episodes):
            self.reset(env)
            while not self.ended[env]:
                self.step(env)
                self.evaluated += 1

    def episode(self, env):
        self.reset(env)
        while not self.ended[env]:
            self.collect(env, 1)


def run(use, core="auto"):
    """What was recorded of a program, which must agree with the program's own account."""
    with profiled(core=core) as profiler:
        program = Program()
        use(program)
    snapshot = snapshot_of(profiler)
    assert (snapshot.steps, snapshot.iterations) == (program.steps, program.iterations)
    return program, snapshot


def steps_in(snapshot, phase):
    """Calls of `env_step` on the driver directly inside of a phase."""
    by_id = {node.id: node for node in snapshot.nodes}
    return sum(
        node.calls
        for node in snapshot.nodes
        if node.operation == "env_step" and node.parent is not None and by_id[node.parent].operation == phase
    )


def vector(envs):
    return gym.vector.SyncVectorEnv([Count] * envs)


CORES = pytest.mark.parametrize("core", ["c", "python"])


@CORES
@pytest.mark.parametrize("envs", [0, 4])
def test_a_separate_environment_is_evaluated_with_every_few_iterations(envs, core):
    def use(program):
        training, evaluation = (vector(envs) if envs else Wrapped(Count())), Count()
        for iteration in range(6):
            program.collect(training, 10, envs or 1)
            program.learn()
            if iteration % 2:
                program.evaluate(evaluation)

    program, snapshot = run(use, core)
    assert steps_in(snapshot, "evaluation") == program.evaluated
    assert steps_in(snapshot, "rollout") == 60
    assert calls(snapshot)["evaluation"] == 3
    assert calls(snapshot)["rollout"] == calls(snapshot)["update"] == 6
    assert snapshot.account("evaluation").category == "system"


@pytest.mark.parametrize("often", [1, 2])
def test_an_environment_that_is_made_for_each_evaluation_is_no_training(often):
    def use(program):
        training = Wrapped(Count())
        for iteration in range(6):
            program.collect(training, 10)
            program.learn()
            if iteration % often == 0:
                program.evaluate(Wrapped(Count()))

    program, snapshot = run(use)
    assert steps_in(snapshot, "evaluation") == program.evaluated


@pytest.mark.parametrize("gone", [True, False])
def test_the_last_evaluation_opens_no_iteration(gone):
    def use(program):
        training = vector(2)
        for _ in range(3):
            program.collect(training, 10, 2)
            program.learn()
        if gone:
            del training
            program.ended.clear()
        program.evaluate(Count())

    program, snapshot = run(use)
    assert steps_in(snapshot, "evaluation") == program.evaluated


@CORES
def test_an_evaluation_before_the_training_is_no_training(core):
    def use(program):
        training, evaluation = Count(), Count()
        program.evaluate(evaluation)
        for _ in range(3):
            program.collect(training, 10)
            program.learn()
            program.evaluate(evaluation)

    program, snapshot = run(use, core)
    assert steps_in(snapshot, "evaluation") == program.evaluated
    assert steps_in(snapshot, "rollout") == program.steps


def test_an_evaluation_in_the_middle_of_a_rollout_is_no_training():
    def use(program):
        training, evaluation = Count(), Count()
        for iteration in range(4):
            program.collect(training, 9)
            if iteration:
                program.evaluate(evaluation)
                program.evaluate(evaluation)
            program.collect(training, 3)
            program.learn()

    program, snapshot = run(use)
    assert steps_in(snapshot, "evaluation") == program.evaluated


def test_an_evaluation_that_interrupts_the_very_first_rollout_is_not_counted():
    def use(program):
        training, evaluation = Count(), Count()
        for _ in range(3):
            program.collect(training, 9)
            program.evaluate(evaluation)
            program.collect(training, 3)
            program.learn()

    run(use)


@CORES
def test_environments_that_are_all_reset_at_the_start_are_told_apart(core):
    def use(program):
        training, evaluation = Count(), Count()
        program.reset(training)
        program.reset(evaluation)
        for _ in range(4):
            program.collect(training, 10)
            program.learn()
            program.evaluate(evaluation)

    program, snapshot = run(use, core)
    assert steps_in(snapshot, "evaluation") == program.evaluated


@CORES
@pytest.mark.parametrize("first", [True, False])
def test_evaluation_environments_that_are_stepped_in_turn_are_no_training(first, core):
    """As tianshou does: several environments each, one after the other, and a test before the training."""

    def use(program):
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
                    program.collect(env, 1)
            program.learn()
            evaluate()

    program, snapshot = run(use, core)
    assert steps_in(snapshot, "evaluation") == program.evaluated


@pytest.mark.parametrize("eager", [True, False])
def test_environments_that_are_collected_from_in_turn_all_train(eager):
    def use(program):
        training = [Count(5 + i) for i in range(3)]
        if eager:
            for env in training:
                program.reset(env)
        for _ in range(4):
            for _ in range(6):
                for env in training:
                    program.collect(env, 1)
            program.learn()

    _, snapshot = run(use)
    assert "evaluation" not in calls(snapshot)


def test_environments_that_give_an_episode_each_all_train():
    def use(program):
        training = [Count(5 + i) for i in range(3)]
        for _ in range(4):
            for env in training:
                program.episode(env)
            program.learn()

    program, snapshot = run(use)
    assert "evaluation" not in calls(snapshot)
    assert steps_in(snapshot, "rollout") == program.steps


def test_an_environment_that_is_made_for_each_episode_trains():
    def use(program):
        for _ in range(5):
            program.episode(Wrapped(Count()))
            program.learn()

    _, snapshot = run(use)
    assert "evaluation" not in calls(snapshot)


@CORES
def test_two_tasks_that_take_turns_both_train(core):
    def use(program):
        tasks = [Count(5), Count(6)]
        for iteration in range(6):
            program.collect(tasks[iteration % 2], 10)
            program.learn()

    _, snapshot = run(use, core)
    assert "evaluation" not in calls(snapshot)
    assert calls(snapshot)["rollout"] == 6


def test_a_task_that_comes_after_an_evaluation_trains():
    def use(program):
        tasks, evaluation = [Count(5), Count(6)], Count()
        for iteration in range(8):
            program.collect(tasks[iteration >= 4], 10)
            program.learn()
            program.evaluate(evaluation)

    run(use)


def test_the_same_environment_behind_its_wrapper_is_the_same():
    def use(program):
        bare = Count()
        for env in (Wrapped(bare), bare, Wrapped(bare)):
            program.collect(env, 10)
            program.learn()

    _, snapshot = run(use)
    assert "evaluation" not in calls(snapshot)


def test_an_evaluation_in_the_training_environment_itself_cannot_be_told():
    """Its steps are counted. What matters is that the phases and iterations go on."""

    def use(program):
        training = Count()
        for _ in range(3):
            program.collect(training, 10)
            program.learn()
            program.evaluate(training, episodes=1)
        program.steps += program.evaluated

    run(use)


@CORES
@pytest.mark.parametrize("envs", [0, 3])
def test_random_steps_before_the_first_update_are_prefill(envs, core):
    def use(program):
        training, evaluation = (vector(envs) if envs else Count()), Count()
        program.prefill(training, 30, envs or 1)
        for step in range(20):
            program.collect(training, 1, envs or 1)
            program.learn(passes=1)
            if step % 8 == 7:
                program.evaluate(evaluation)

    program, snapshot = run(use, core)
    assert steps_in(snapshot, "prefill") * (envs or 1) == program.prefilled
    assert steps_in(snapshot, "evaluation") == program.evaluated
    assert calls(snapshot)["prefill"] == 1
    assert calls(snapshot)["rollout"] == calls(snapshot)["update"] == 20
    assert snapshot.account("prefill").category == "system"


@pytest.mark.parametrize("collected", [1, 10])
def test_a_test_between_prefill_and_training_is_an_evaluation(collected):
    def use(program):
        training, evaluation = Count(), Count()
        program.prefill(training, 30)
        program.evaluate(evaluation)
        for _ in range(5):
            program.collect(training, collected)
            program.learn()

    program, snapshot = run(use)
    assert steps_in(snapshot, "prefill") == program.prefilled
    assert steps_in(snapshot, "evaluation") == program.evaluated


def test_a_policy_that_acts_now_and_then_before_it_learns_still_prefills():
    """Epsilon-greedy: the training begins with the step after which it first learns."""

    def use(program):
        training = Count()
        for step in range(60):
            program.step(training, act=step > 3 and step % 3 == 0)
            if step >= 40:
                program.steps += 1
                program.learn(passes=1)

    _, snapshot = run(use)
    assert steps_in(snapshot, "prefill") + steps_in(snapshot, "rollout") == 60
    assert steps_in(snapshot, "rollout") == 20, "the first one that a forward pass chose looked like the training"


@pytest.mark.parametrize("random", [(), (0,), (2,), (0, 1, 2, 3)])
def test_random_steps_of_the_training_that_follow_a_prefill_are_counted(random):
    """Epsilon-greedy, one update every fourth step. random: which of the first four steps are."""

    def use(program):
        training = Count()
        program.prefill(training, 30)
        for step in range(20):
            program.step(training, act=step not in random)
            program.steps += 1
            if step % 4 == 3:
                program.learn(passes=1)

    run(use)


@CORES
def test_a_forward_pass_for_a_list_of_environments_serves_each_of_them(core):
    """As tianshou does: random steps, a test, then steps of which each batch is chosen at once."""

    def use(program):
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

    program, snapshot = run(use, core)
    assert steps_in(snapshot, "prefill") == program.prefilled
    assert steps_in(snapshot, "evaluation") == program.evaluated
    assert steps_in(snapshot, "rollout") == program.steps


def test_a_first_rollout_whose_actions_a_network_chose_is_training():
    def use(program):
        training = Count()
        for _ in range(3):
            for _ in range(4):
                program.collect(training, 1)
                for _ in range(3):  # the action is repeated
                    program.step(training, act=False)
                    program.steps += 1
            program.learn()

    _, snapshot = run(use)
    assert "prefill" not in calls(snapshot)


def test_random_steps_that_are_never_learned_from_are_counted():
    def use(program):
        training = Count()
        for _ in range(20):
            program.step(training, act=False)
            program.steps += 1

    run(use)


def test_a_policy_that_no_probe_sees_has_no_prefill():
    def use(program):
        training = Count()
        for _ in range(4):
            for _ in range(10):
                program.step(training, act=False)
                program.steps += 1
            program.learn()

    run(use)


def test_steps_after_the_last_update_are_counted_and_open_no_iteration():
    def use(program):
        training = Count()
        for _ in range(3):
            program.collect(training, 10)
            program.learn()
        program.collect(training, 4)

    run(use)


def test_evaluation_prefill_and_training_have_their_own_places():
    def use(program):
        training, evaluation = Count(), Count()
        program.evaluate(evaluation)
        program.prefill(training, 30)
        for _ in range(5):
            program.collect(training, 3)
            program.learn()
            program.evaluate(evaluation)

    _, snapshot = run(use)
    assert {"evaluation/env_step", "prefill/env_step", "rollout/env_step"} <= places(snapshot)


@CORES
@pytest.mark.parametrize("evaluated", [True, False])
def test_what_follows_the_last_phase_is_no_part_of_it(evaluated, core):
    with profiled(core=core, clock="fake") as profiler:
        program = Program()
        training, evaluation = Count(), Count()
        for _ in range(3):
            program.collect(training, 10)
            program.learn()
        if evaluated:
            program.evaluate(evaluation)
        profiler.ledger.set_time(2_000, 0)  # as a plot would take
        phases.end()
    snapshot = snapshot_of(profiler)
    assert snapshot.account("after_training").ledger_ns == 2_000
    assert (snapshot.steps, snapshot.iterations) == (program.steps, program.iterations)
    assert snapshot.account("evaluation").ledger_ns == snapshot.account("update").ledger_ns == 0

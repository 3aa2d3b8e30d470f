"""The rules that find phases, on unusual loops."""

from __future__ import annotations

import threading
from contextlib import contextmanager

import gymnasium as gym
import pytest
import torch
from generic_probes import calls, places, profiled, snapshot_of
from torch import nn

from rlprof.probes import phases


class Loop:
    """An environment, a network and an optimizer, for a test to use in its own order."""

    def __init__(self, envs=1):
        self.envs = gym.vector.SyncVectorEnv([lambda: gym.make("CartPole-v1")] * envs)
        self.net = nn.Linear(4, 2)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.01)
        self.obs, _ = self.envs.reset(seed=1)

    def collect(self, steps=1):
        for _ in range(steps):
            self.act()
            self.step()

    def act(self):
        with torch.no_grad():
            self.net(torch.from_numpy(self.obs))

    def step(self):
        self.obs, *_ = self.envs.step(self.envs.action_space.sample())

    def learn(self, batch=64, steps=2):
        for _ in range(steps):
            self.net(torch.ones(batch, 4)).sum().backward()
            self.optimizer.step()


@contextmanager
def recorded(envs=1):
    """A loop that is recorded. Its snapshot is there after the block: the last iteration ends with the recording."""
    with profiled() as profiler:
        loop = Loop(envs)
        loop.profiler = profiler
        yield loop
    loop.snapshot = snapshot_of(profiler)


def test_an_iteration_is_a_rollout_and_what_follows():
    with recorded() as loop:
        for _ in range(5):
            loop.collect(10)
            loop.learn(batch=8)
    snapshot = loop.snapshot
    counted = calls(snapshot)
    assert snapshot.iterations == 5
    assert counted["advantage"] == counted["rollout"] == 5
    assert "batch_preparation" not in counted
    assert {"rollout/policy_forward", "update/loss_forward"} <= places(snapshot)
    assert not {"rollout/loss_forward", "update/policy_forward"} & places(snapshot)


def test_a_minibatch_as_large_as_the_vector_is_learned_from():
    with recorded(envs=2) as loop:
        for _ in range(3):
            loop.collect(8)
            loop.learn(batch=2)
    snapshot = loop.snapshot
    assert calls(snapshot)["policy_forward"] == 3 * 8
    assert snapshot.iterations == 3
    assert not {"rollout/loss_forward", "update/policy_forward"} & places(snapshot)


def test_a_recurrent_network_is_called_in_both_phases_with_the_same_leading_dimension():
    lstm = nn.LSTM(4, 4)

    with recorded() as loop:
        for _ in range(3):
            for _ in range(8):
                with torch.no_grad():
                    loop.net(torch.from_numpy(loop.obs))
                    lstm(torch.ones(1, 1, 4))
                loop.step()
            for _ in range(2):
                features = loop.net(torch.ones(8, 4)).repeat(1, 2)
                outputs = [lstm(row.view(1, 1, 4))[0] for row in features]
                torch.cat(outputs).sum().backward()
                loop.optimizer.step()
    snapshot = loop.snapshot
    counted = calls(snapshot)
    assert counted["policy_forward"] == 3 * 8 * 2
    assert counted["loss_forward"] == 3 * 2 * 9
    assert counted["update"] == snapshot.iterations == 3


def test_an_actor_critic_that_learns_after_every_step_has_one_iteration_per_step():
    with recorded() as loop:
        for _ in range(10):
            logits = loop.net(torch.from_numpy(loop.obs))
            loop.step()
            value = loop.net(torch.from_numpy(loop.obs))
            loop.optimizer.zero_grad()
            (logits.sum() + value.sum()).backward()
            loop.optimizer.step()
    snapshot = loop.snapshot
    assert snapshot.iterations == 10
    assert calls(snapshot)["policy_forward"] == 20


def test_gradients_that_are_gathered_over_many_steps_make_one_iteration():
    with recorded() as loop:
        for _ in range(3):
            for _ in range(4):
                loop.collect()
                loop.net(torch.ones(64, 4)).sum().backward()
            loop.optimizer.step()
    snapshot = loop.snapshot
    assert snapshot.iterations == 3
    assert calls(snapshot)["env_step"] == 12


def test_a_program_with_spans_of_its_own_keeps_its_own_phases():
    with recorded() as loop:
        for _ in range(3):
            with loop.profiler.profile("collect"):
                loop.collect(8)
            with loop.profiler.profile("fit"):
                loop.learn()
    snapshot = loop.snapshot
    # The environments are reset before the program opens its first span.
    assert {place.split("/")[0] for place in places(snapshot)} == {"startup", "env_reset", "collect", "fit"}
    assert {"collect/policy_forward", "collect/env_step", "fit/loss_forward", "fit/backward"} <= places(snapshot)
    assert "update" not in calls(snapshot)
    assert {"policy_forward", "env_step", "loss_forward"} <= set(calls(snapshot))
    assert snapshot.account("collect").calls == 3
    assert snapshot.iterations == 3


def test_a_program_that_marks_its_own_iterations_is_believed():
    with profiled() as profiler:
        with profiler.iteration():
            loop = Loop()
        for _ in range(6):
            with profiler.iteration():
                for _ in range(2):  # two updates per iteration
                    loop.collect()
                    loop.learn()
    assert snapshot_of(profiler).iterations == 7


def test_a_framework_that_knows_better_switches_the_rules_off():
    with recorded() as loop:
        loop.step()
        loop.learn()
        phases.off()
        phases.off()
        before = snapshot_of(loop.profiler)
        for _ in range(3):
            loop.collect()
            loop.learn()
        after = snapshot_of(loop.profiler)
        assert (after.iterations, after.steps) == (before.iterations, before.steps)
        assert calls(after)["update"] == calls(before)["update"] == 1
        assert loop.profiler.ledger.depth() == 0
    snapshot = loop.snapshot
    assert {"policy_forward", "loss_forward", "env_step", "backward"} <= places(snapshot)


def test_without_an_optimizer_there_are_no_phases():
    with profiled() as profiler:
        phases._phases[profiler].loop.training = False  # other tests have made some
        env = gym.make("CartPole-v1")
        net = nn.Linear(4, 2)
        obs, _ = env.reset(seed=1)
        for _ in range(5):
            with torch.no_grad():
                net(torch.from_numpy(obs))
            obs, *_ = env.step(0)
        snapshot = snapshot_of(profiler)
    assert places(snapshot) == {"startup", "env_reset", "policy_forward", "env_step"}
    assert snapshot.iterations == 0
    assert snapshot.steps == 5


def test_a_network_inside_an_environment_is_the_environments():
    class Learned(gym.Wrapper):
        reward_model = nn.Linear(4, 1)

        def step(self, action):
            obs, _, terminated, truncated, info = super().step(action)
            return obs, self.reward_model(torch.from_numpy(obs)).item(), terminated, truncated, info

    with profiled() as profiler:
        env = Learned(gym.make("CartPole-v1"))
        env.reset(seed=1)
        env.step(0)
        snapshot = snapshot_of(profiler)
    assert any(place.endswith("env_step/env_forward") for place in places(snapshot))
    assert snapshot.account("env_forward").category == "environment"


def test_another_thread_has_no_phases():
    with recorded() as loop:

        def work():
            loop.collect()
            loop.learn()

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    snapshot = loop.snapshot
    assert snapshot.iterations == 0
    assert "update" not in calls(snapshot)
    assert snapshot.account("backward").calls == 2


def test_the_thread_that_drives_has_them():
    with profiled() as profiler:

        def work():
            profiler.drive()
            loop = Loop()
            for _ in range(3):
                loop.collect()
                loop.learn()

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert snapshot_of(profiler).iterations == 3


@pytest.mark.parametrize("again", [True, False])
def test_recording_that_is_switched_off_and_on_goes_on(again):
    with recorded() as loop:
        for i in range(6):
            loop.collect()
            if i == 2:
                loop.profiler.disable()
            if i == 4 and again:
                loop.profiler.enable()
            loop.learn()
    snapshot = loop.snapshot
    assert snapshot.iterations == (4 if again else 2), "the third had not learned when recording was switched off"

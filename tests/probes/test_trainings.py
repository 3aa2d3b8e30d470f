"""Hand-written trainings that know nothing of rlprof: the same results, phases by rule, planted delays found."""

from __future__ import annotations

from types import SimpleNamespace

import gymnasium as gym
import pytest
import torch
from generic_probes import calls, places, profiled, snapshot_of
from trainings import dqn, ppo, reinforce, sac


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def profile_training(train, **settings):
    with profiled() as profiler:
        result = train(**settings)
    return result, snapshot_of(profiler)


@pytest.mark.parametrize("training", [ppo, dqn, sac, reinforce], ids=lambda module: module.__name__.split(".")[-1])
def test_a_profiled_training_computes_what_it_computes_alone(training):
    weights, returns = training.train()
    (profiled_weights, profiled_returns), _ = profile_training(training.train)
    assert all(torch.equal(a, b) for a, b in zip(weights, profiled_weights, strict=True))
    assert profiled_returns == returns
    assert len(returns) > 3


def test_a_ppo_has_its_phases():
    (_, returns), snapshot = profile_training(ppo.train, iterations=4, envs=4, steps=32, epochs=2, minibatches=2)
    counted = calls(snapshot)
    assert (snapshot.iterations, snapshot.steps, snapshot.episodes) == (4, 4 * 32 * 4, len(returns))
    assert counted["rollout"] == counted["advantage"] == counted["update"] == 4
    assert counted["env_step"] == 4 * 32
    assert counted["policy_forward"] == 4 * (32 * 2 + 1)  # actor and critic per step, and the last value
    assert counted["loss_forward"] == 4 * 2 * 2 * 2
    assert counted["backward"] == counted["optimizer_step"] == counted["zero_grad"] == 4 * 2 * 2
    assert {place for place in places(snapshot) if "/" in place} == {
        "rollout/env_step", "rollout/env_step/env_reset", "rollout/policy_forward",
        "update/loss_forward", "update/zero_grad", "update/backward", "update/optimizer_step",
    }  # fmt: skip


def test_a_dqn_acts_with_gradients_and_learns_from_a_replay_buffer():
    _, snapshot = profile_training(dqn.train, steps=400, learning_starts=100, train_frequency=4)
    counted = calls(snapshot)
    updates = 74
    assert counted["env_step"] == 400
    assert snapshot.steps == 299
    assert counted["update"] == counted["optimizer_step"] == snapshot.iterations == updates
    assert counted["batch_preparation"] == updates
    assert counted["loss_forward"] == 2 * updates
    assert not {"update/policy_forward", "rollout/loss_forward", "update/env_step"} & places(snapshot)


def test_a_sac_updates_after_every_step_with_several_optimizers():
    _, snapshot = profile_training(sac.train, steps=120, learning_starts=30)
    counted = calls(snapshot)
    assert (snapshot.steps, counted["env_step"]) == (90, 120)
    assert snapshot.iterations == counted["update"] == 89
    assert counted["policy_forward"] == 90
    assert not {"update/policy_forward", "rollout/loss_forward", "update/env_step"} & places(snapshot)


def test_a_reinforce_acts_with_gradients_and_learns_without_a_forward_pass():
    (_, returns), snapshot = profile_training(reinforce.train, episodes=8)
    counted = calls(snapshot)
    assert snapshot.iterations == snapshot.episodes == counted["update"] == 8
    assert counted["env_step"] == counted["policy_forward"] == sum(returns)
    assert counted["optimizer_step"] == 8, "though a scheduler has replaced the step of the instance"
    assert "loss_forward" not in counted


DELAY = 0.01
PLANTED = {
    # Where the delay is: the operation it must be found in, and how often it comes.
    "env": ("env_step", 3 * 16),
    "forward": ("policy_forward", 3 * 16),
    "gae": ("advantage", 3),
    "optimizer": ("optimizer_step", 3 * 4),
}


def with_planted_sleeps(module, monkeypatch, **settings):
    """A training on a clock that only its sleeps move, so that nothing else on the machine can; and their sum."""
    slept = 0
    with profiled(clock="fake") as profiler:

        def sleep(seconds):
            nonlocal slept
            slept += round(1e9 * seconds)
            profiler.ledger.set_time(slept, 0)

        monkeypatch.setattr(module, "time", SimpleNamespace(sleep=sleep))
        module.train(**settings)
    snapshot = snapshot_of(profiler)
    assert snapshot.wall_ns == slept
    return snapshot, slept


@pytest.mark.parametrize("place", PLANTED)
def test_a_planted_delay_is_found_in_its_operation(place, monkeypatch):
    operation, times = PLANTED[place]
    settings = {"iterations": 3, "envs": 2, "steps": 16, "epochs": 2, "minibatches": 2}
    snapshot, slept = with_planted_sleeps(ppo, monkeypatch, **settings, delays={place: DELAY})
    assert slept >= 0.9 * times * DELAY * 1e9  # a step that resets an environment does not sleep
    assert snapshot.account(operation).ledger_ns == slept


def test_what_a_replay_buffer_takes_is_batch_preparation(monkeypatch):
    snapshot, slept = with_planted_sleeps(dqn, monkeypatch, steps=140, delays={"replay": DELAY})
    assert slept == 9 * DELAY * 1e9
    assert snapshot.account("batch_preparation").ledger_ns == slept


def test_what_computing_returns_takes_is_advantage(monkeypatch):
    snapshot, slept = with_planted_sleeps(reinforce, monkeypatch, episodes=4, delays={"returns": DELAY})
    assert snapshot.account("advantage").ledger_ns == slept == 4 * DELAY * 1e9


@pytest.mark.long
def test_environments_in_worker_processes_are_waited_for_and_change_no_result():
    settings = {"iterations": 2, "envs": 2, "steps": 16, "epochs": 1, "vector": gym.vector.AsyncVectorEnv}
    weights, expected = ppo.train(**settings)
    (profiled_weights, returns), snapshot = profile_training(ppo.train, **settings)
    assert "rollout/env_step/env_wait" in places(snapshot)
    assert (snapshot.iterations, snapshot.steps, snapshot.episodes) == (2, 2 * 16 * 2, len(returns))
    assert "pipe_wait" not in calls(snapshot) or "rollout/env_step/env_wait/pipe_wait" not in places(snapshot)
    assert all(torch.equal(a, b) for a, b in zip(weights, profiled_weights, strict=True))
    assert returns == expected

"""What the probe of TorchRL finds in a training: where, how often, what it counts, and whether the times are true."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from generic_probes import paths
from quiet_torchrl import recorded
from torchrl.collectors import Collector, MultiSyncCollector
from torchrl.data import LazyTensorStorage, ReplayBuffer
from torchrl.envs import GymEnv, ParallelEnv
from torchrl.modules import QValueActor, RandomPolicy
from torchrl.objectives import LossModule
from torchrl.objectives.value import GAE
from trainings import torchrl_dqn, torchrl_ppo
from trainings.torchrl_ppo import Args, Training

from rlprof.probes import torchrl as torchrl_probe

pytestmark = pytest.mark.filterwarnings("default")  # TorchRL warns of itself


def make_env():
    return GymEnv("CartPole-v1")


def random_collector(frames=64, batch=32, **options):
    env = GymEnv("CartPole-v1")
    return Collector(env, RandomPolicy(env.action_spec), frames_per_batch=batch, total_frames=frames, **options)


@pytest.mark.long
def test_a_training_is_rollouts_and_updates_and_what_they_consist_of():
    training = Training(Args(frames=192, batch=64, minibatch=32, epochs=2))
    with recorded() as profiler:
        training.run()
    snapshot = profiler.snapshot()
    snapshot.check()
    found = paths(snapshot)
    iterations, steps, epochs, minibatches = 3, 192, 6, 12
    assert found["rollout"] == found["update"] == iterations
    assert found["rollout/policy_forward"] == found["rollout/env_step"] == steps
    assert found["update/advantage"] == found["update/advantage/value_forward"] == found["update/replay_add"] == epochs
    for name in ("replay_sample", "loss", "backward", "gradient_clip", "optimizer_step", "zero_grad"):
        assert found[f"update/{name}"] == minibatches, name
    assert found["rollout/env_step/tensordict_ops"] > steps
    # One name per call: no module's call around a loss, no second step inside a step.
    known = {"rollout", "update", "policy_forward", "env_step", "env_reset", "advantage", "value_forward", "loss"}
    known |= {"replay_add", "replay_sample", "backward", "gradient_clip", "optimizer_step", "zero_grad"}
    assert {account.operation for account in snapshot.accounts} == known | {"tensordict_ops"}
    assert not any("env_step/env_step" in path or "loss/" in path.replace("/tensordict_ops", "") for path in found)


def test_iterations_steps_and_episodes_are_the_collectors():
    training = Training(Args(frames=256, batch=64, minibatch=64, epochs=1))
    with recorded() as profiler:
        returns, _ = training.run()
    snapshot = profiler.snapshot()
    assert (snapshot.iterations, snapshot.steps, snapshot.episodes) == (4, 256, len(returns))


@pytest.mark.long
def test_planted_delays_are_found_where_they_were_planted(monkeypatch):
    """On a clock that only these delays move, so that nothing else on the machine can."""
    delay = 0.01
    training = Training(
        Args(frames=128, batch=64, minibatch=16, epochs=4, step=delay, policy=delay, gae=delay, optimizer=delay)
    )
    slept = Counter()
    with recorded(clock="fake") as profiler:

        def nap(operation, seconds):
            slept[operation] += round(1e9 * seconds)
            profiler.ledger.set_time(slept.total(), 0)

        monkeypatch.setattr(torchrl_ppo, "nap", nap)
        training.run()
    snapshot = profiler.snapshot()
    assert set(slept) == {"env_step", "policy_forward", "advantage", "optimizer_step"}
    assert {operation: snapshot.account(operation).ledger_ns for operation in slept} == slept
    assert snapshot.wall_ns == slept.total()


def test_a_dqn_has_its_buffer_and_its_target_network():
    with recorded() as profiler:
        torchrl_dqn.train(frames=96, batch=32)
    snapshot = profiler.snapshot()
    found = paths(snapshot)
    assert (snapshot.iterations, snapshot.steps) == (3, 96)
    for name in ("loss", "target_update", "replay_sample"):
        assert found[f"update/{name}"] == 12, name
    assert found["update/replay_add"] == 3
    assert found["rollout/policy_forward"] == 32, "the first 64 actions are random"


def test_classes_that_the_training_brings_are_timed_from_their_first_object_on():
    with recorded(torchrl_probe.PROBE) as profiler:

        class Mine(LossModule):
            def forward(self, tensordict):
                return self.actor_loss(tensordict)

            def actor_loss(self, tensordict):
                return tensordict

        class MyGAE(GAE):
            def forward(self, tensordict):
                return tensordict

        loss = Mine()
        loss(torch.ones(1))
        loss.actor_loss(torch.ones(1))
        MyGAE(gamma=0.9, lmbda=0.9, value_network=None)(torch.ones(1))
    snapshot = profiler.snapshot()
    assert snapshot.account("loss").calls == 2
    assert snapshot.account("advantage").calls == 1


def test_a_loop_that_is_left_ends_its_update():
    with recorded() as profiler:
        for _ in random_collector():
            break
        assert profiler.ledger.depth() == 0
        collector = random_collector()
        collector.next()
        assert profiler.ledger.depth() == 1
        collector.shutdown()
        assert profiler.ledger.depth() == 0
        with pytest.raises(ZeroDivisionError):
            for batch in random_collector():
                batch.numel() // 0
    snapshot = profiler.snapshot()
    assert (snapshot.iterations, snapshot.steps) == (3, 96)
    assert snapshot.account("update").calls == 3


def test_a_collector_that_fills_a_buffer_counts_its_steps():
    buffer = ReplayBuffer(storage=LazyTensorStorage(128))
    with recorded() as profiler:
        assert list(random_collector(96, replay_buffer=buffer)) == [None] * 3
    snapshot = profiler.snapshot()
    assert (snapshot.iterations, snapshot.steps) == (3, 96)
    assert snapshot.account("replay_add").calls > 0


def test_on_a_thread_of_its_own_a_collector_marks_no_iterations():
    buffer = ReplayBuffer(storage=LazyTensorStorage(128))
    collector = random_collector(96, replay_buffer=buffer)
    with recorded() as profiler:
        collector.start()
        collector._thread.join()
    snapshot = profiler.snapshot()
    assert (snapshot.iterations, snapshot.steps) == (0, 96)
    assert snapshot.account("update").calls == 0
    assert snapshot.account("rollout").overlapped_ns > 0


def test_an_environments_rollout_inside_the_loop_is_evaluation():
    env = GymEnv("CartPole-v1")
    with recorded() as profiler:
        env.rollout(4)
        for _ in random_collector(32):
            env.rollout(4)
    found = paths(profiler.snapshot())
    assert found["update/evaluation"] == 1
    assert found["update/evaluation/env_step"] > 0


@pytest.mark.long
def test_the_driver_waits_for_parallel_environments():
    env = ParallelEnv(2, make_env)
    try:
        with recorded(torchrl_probe.PROBE) as profiler:
            collector = Collector(env, RandomPolicy(env.action_spec), frames_per_batch=16, total_frames=32)
            for _ in collector:
                pass
    finally:
        env.close(raise_if_closed=False)
    snapshot = profiler.snapshot()
    found = paths(snapshot)
    assert (snapshot.iterations, snapshot.steps) == (2, 32)
    assert found["rollout/env_step"] == 16
    assert found["rollout/env_step/env_wait"] >= 16


@pytest.mark.long
def test_collectors_in_workers_are_counted_where_their_batches_arrive():
    actor = QValueActor(torch.nn.Linear(4, 2), spec=make_env().action_spec)
    with recorded(torchrl_probe.PROBE) as profiler:
        collector = MultiSyncCollector(
            [make_env, make_env], actor, frames_per_batch=32, total_frames=64, cat_results="stack"
        )
        for _ in collector:
            collector.update_policy_weights_()
        collector.shutdown()
    snapshot = profiler.snapshot()
    assert (snapshot.iterations, snapshot.steps) == (2, 64)
    assert snapshot.account("weight_sync").calls >= 2
    assert snapshot.account("env_make").calls == 1

"""What the probes of stable-baselines3 and sb3-contrib find in a training: where, how often, and what they count."""

from __future__ import annotations

import itertools
import warnings

import pytest
import stable_baselines3
from generic_probes import paths
from sb3_trainings import SOME_LONG, attached, off_policy, on_policy, recorded, trained
from stable_baselines3.common import evaluation
from stable_baselines3.common.callbacks import BaseCallback, CallbackList, EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.vec_env import SubprocVecEnv, VecFrameStack, VecNormalize

from rlprof import Profiler, RlprofWarning
from rlprof.probes.probe import Probe
from rlprof.probes.registry import Attached
from rlprof.probes.stable_baselines3 import PROBE, is_attached


class Stop(BaseCallback):
    """Ends the training at a step."""

    def __init__(self, at):
        super().__init__()
        self.at = at

    def _on_step(self):
        return self.n_calls < self.at


def in_training(model):
    """Steps and ended episodes after the steps that only fill the replay buffer."""
    fill = getattr(model, "learning_starts", 0)
    ends = itertools.accumulate(episode["l"] for episode in model.ep_info_buffer)
    return model.num_timesteps - fill, sum(end > fill for end in ends)


@pytest.mark.parametrize("core", ["c", "python"])
def test_a_training_is_rollouts_and_updates_and_what_they_consist_of(core):
    model = on_policy(stable_baselines3.PPO, n_epochs=2)
    with recorded(core) as profiler:
        model.learn(192)
    snapshot = profiler.snapshot()
    snapshot.check()
    iterations, steps, batches = 3, 96, 12
    expected = {
        "env_reset": 1,
        "rollout": iterations,
        "rollout/policy_forward": steps,
        "rollout/policy_forward/action_sampling": steps,
        "rollout/env_step": steps,
        "rollout/buffer_add": steps,
        "rollout/buffer_reset": iterations,
        "rollout/callback": steps + 2 * iterations,
        "rollout/value_forward": iterations,
        "rollout/advantage": iterations,
        "update": iterations,
        "update/evaluate_actions": batches,
        "update/buffer_get": batches + 2 * iterations,  # each time through, the end is requested as well
        "logging": iterations,
        "callback": 1,
    }
    assert paths(snapshot) == expected


@pytest.mark.long
@pytest.mark.parametrize("name", SOME_LONG)
def test_every_algorithm_has_iterations_steps_and_episodes(name):
    with recorded() as profiler:
        model = trained(name)
    snapshot = profiler.snapshot()
    calls = {account.operation: account.calls for account in snapshot.accounts}
    assert calls["rollout"] > 0
    assert calls["update"] > 0
    assert snapshot.iterations == calls["update"]
    steps, ended = in_training(model)  # by SB3's Monitor; ARS forgets the episodes of earlier iterations
    assert snapshot.steps == steps
    assert snapshot.episodes == ended or (name == "ARS" and snapshot.episodes > ended > 0)
    assert calls["policy_forward"] > 0
    assert calls["env_step"] > 0


@pytest.mark.long
def test_replayed_experience_is_stored_and_sampled():
    with recorded() as profiler:
        off_policy(stable_baselines3.SAC).learn(60)
    found = paths(profiler.snapshot())
    assert found["prefill/action_selection"] == found["prefill/replay_add"] == 20
    assert "prefill/action_selection/policy_forward" not in found  # the first 20 actions are drawn at random
    assert found["rollout/action_selection"] == found["rollout/replay_add"] == 40
    assert found["rollout/action_selection/policy_forward"] == 40
    assert found["update/replay_sample"] == 40
    assert found["update/value_forward"] == 3 * 40
    assert found["update/policy_forward"] == 2 * 40
    assert found["update/target_update"] == 2 * 40  # of the networks, and of what batch normalisation keeps
    assert not any("replay_add/replay_add" in path for path in found)


@pytest.mark.long
def test_all_that_happens_before_learning_starts_is_no_part_of_an_iteration():
    with recorded() as profiler:
        off_policy(stable_baselines3.TD3).learn(60)
    snapshot = profiler.snapshot()
    assert snapshot.account("prefill").calls == 20
    assert snapshot.iterations == snapshot.account("rollout").calls == snapshot.account("update").calls == 40
    assert snapshot.steps == 40


@pytest.mark.long
def test_whole_episodes_that_begin_before_learning_starts_fill_the_buffer():
    model = off_policy(stable_baselines3.DQN, "CartPole-v1", train_freq=(1, "episode"))
    with recorded() as profiler:
        model.learn(120)
    lengths = [episode["l"] for episode in model.ep_info_buffer]
    filling = next(number for number in range(len(lengths)) if sum(lengths[:number]) > model.learning_starts)
    snapshot = profiler.snapshot()
    assert snapshot.account("prefill").calls == filling
    assert snapshot.steps == sum(lengths[filling:])
    assert snapshot.episodes == snapshot.account("rollout").calls == len(lengths) - filling > 0
    assert snapshot.iterations == snapshot.account("update").calls == snapshot.episodes + 1


@pytest.mark.parametrize("core", ["c", "python"])
def test_a_training_that_a_callback_ends_has_its_last_step_counted(core):
    cases = [
        (on_policy(stable_baselines3.PPO), 5, 10),
        (off_policy(stable_baselines3.SAC), 5, 0),  # before learning starts
        (off_policy(stable_baselines3.SAC), 25, 5),
    ]
    for model, last, counted in cases:
        with recorded(core) as profiler:
            model.learn(100, callback=Stop(last))
        assert model.num_timesteps == last * model.n_envs
        assert profiler.snapshot().steps == counted


def test_steps_of_an_evaluation_do_not_count():
    callback = EvalCallback(make_vec_env("CartPole-v1", 1, seed=4), eval_freq=16, n_eval_episodes=2, verbose=0)
    with recorded() as profiler:
        on_policy(stable_baselines3.PPO).learn(64, callback=CallbackList([callback]))
        evaluation.evaluate_policy(on_policy(stable_baselines3.PPO), make_vec_env("CartPole-v1", 1), 1)
    snapshot = profiler.snapshot()
    assert (snapshot.iterations, snapshot.steps) == (1, 64)
    found = paths(snapshot)
    assert found["rollout/callback/evaluation"] == 2
    assert found["rollout/callback/evaluation/env_step"] >= 4
    assert found["evaluation"] == 1
    assert not any("callback/callback" in path for path in found)


def test_what_follows_a_training_is_no_part_of_its_last_iteration():
    profiler = Profiler()
    with attached(profiler):
        profiler.enable()
        on_policy(stable_baselines3.PPO).learn(64)
        assert profiler.snapshot().iterations == 1
        with profiler.profile("afterwards"):
            pass
        profiler.disable()
    assert profiler.snapshot().iterations == 1


def test_wrapped_environments_step_once():
    env = VecNormalize(VecFrameStack(make_vec_env("CartPole-v1", 2, seed=1), 2))
    with recorded() as profiler:
        stable_baselines3.PPO("MlpPolicy", env, n_steps=32, batch_size=32, device="cpu").learn(64)
    found = paths(profiler.snapshot())
    assert found["rollout/env_step"] == 32
    assert found["env_reset"] == 1
    assert "rollout/env_step/env_step" not in found


@pytest.mark.long
def test_the_driver_waits_for_environments_in_other_processes():
    env = make_vec_env("CartPole-v1", 2, seed=1, vec_env_cls=SubprocVecEnv)
    try:
        with recorded() as profiler:
            stable_baselines3.PPO("MlpPolicy", env, n_steps=32, batch_size=32, device="cpu").learn(64)
    finally:
        env.close()
    snapshot = profiler.snapshot()
    assert paths(snapshot)["rollout/env_step/env_wait"] == 32
    assert snapshot.account("env_wait").waited_ns > 0
    assert (snapshot.iterations, snapshot.steps) == (1, 64)


def test_classes_of_ones_own_are_timed_once_whether_they_call_super_or_not():
    class OwnPolicy(ActorCriticPolicy):
        def forward(self, obs, deterministic=False):
            return super().forward(obs, deterministic)

    class OwnPPO(stable_baselines3.PPO):
        def collect_rollouts(self, *args, **kwargs):
            return super().collect_rollouts(*args, **kwargs)

        def train(self):
            """Nothing is learned."""

    profiler = Profiler()
    with attached(profiler):

        class LaterPPO(OwnPPO):
            def train(self):
                super().train()

        profiler.enable()
        for kind in (OwnPPO, LaterPPO):
            on_policy(kind, OwnPolicy).learn(64)
        profiler.disable()
    snapshot = profiler.snapshot()
    found = paths(snapshot)
    assert (found["rollout"], found["update"], snapshot.iterations, snapshot.steps) == (2, 2, 2, 128)
    assert found["rollout/policy_forward"] == 64
    assert not any(path.endswith(("rollout/rollout", "update/update")) for path in found)
    assert "policy_forward/policy_forward" not in " ".join(found)


def test_a_training_inside_a_training_is_part_of_its_iteration():
    class Inner(BaseCallback):
        def _on_step(self):
            if self.n_calls == 1:
                on_policy(stable_baselines3.PPO).learn(64)
            return True

    with recorded() as profiler:
        on_policy(stable_baselines3.PPO).learn(128, callback=Inner())
    snapshot = profiler.snapshot()
    assert (snapshot.iterations, snapshot.account("rollout").calls, snapshot.steps) == (2, 2, 192)


def test_a_save_is_a_checkpoint(tmp_path):
    with recorded() as profiler:
        model = on_policy(stable_baselines3.PPO)
        model.save(tmp_path / "model")
        model.policy.save(tmp_path / "policy")
    assert profiler.snapshot().account("checkpoint").calls == 2


@pytest.mark.parametrize("installed", ["1.8.0", "3.0.0"])
def test_an_untested_version_is_not_attached_and_warns(installed, monkeypatch):
    monkeypatch.setattr(Probe, "version", lambda _: installed)
    profiler = Profiler()
    probes = Attached(profiler)
    with pytest.warns(RlprofWarning, match=f"stable-baselines3 {installed}"):
        probes.attach([PROBE])
    assert not is_attached()
    profiler.enable()
    on_policy(stable_baselines3.PPO).learn(64)
    profiler.disable()
    assert paths(profiler.snapshot()) == {}


def test_a_failure_in_counting_warns_once_and_the_training_goes_on():
    with recorded():
        model = on_policy(stable_baselines3.PPO).learn(64)
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            for _ in range(3):
                model._update_info_buffer([], dones=7)
    assert ["are not all counted" in str(warning.message) for warning in warned] == [True]

"""A training under the probes of stable-baselines3 is the training it would be alone."""

from __future__ import annotations

import copy
import inspect
import pickle
import subprocess
import sys

import pytest
import sb3_contrib
import stable_baselines3
import torch
from sb3_contrib.common.maskable import callbacks as maskable_callbacks
from sb3_trainings import SOME_LONG, attached, on_policy, trained
from stable_baselines3.common import (
    base_class,
    buffers,
    callbacks,
    distributions,
    evaluation,
    logger,
    policies,
    vec_env,
)

from rlprof import Profiler, record
from rlprof.probes.patches import with_subclasses
from rlprof.probes.stable_baselines3 import is_attached


def learned(name):
    """Every parameter, and the return and length of every episode."""
    model = trained(name)
    episodes = [(episode["r"], episode["l"]) for episode in model.ep_info_buffer]
    return model.policy.state_dict(), episodes, model._n_updates, model.num_timesteps


@pytest.mark.long
@pytest.mark.parametrize("name", SOME_LONG)
def test_the_same_seed_gives_the_same_weights_and_returns(name, tmp_path):
    weights, *rest = learned(name)
    profiler = Profiler()
    with attached(profiler), record("harmless", dir=tmp_path, profiler=profiler):
        profiled_weights, *profiled_rest = learned(name)
    assert profiler.snapshot().account("update").calls > 0
    assert rest == profiled_rest
    assert weights.keys() == profiled_weights.keys()
    assert all(torch.equal(weights[key], profiled_weights[key]) for key in weights)


ROOTS = (
    base_class.BaseAlgorithm,
    policies.BaseModel,
    buffers.BaseBuffer,
    callbacks.BaseCallback,
    distributions.Distribution,
    logger.Logger,
    vec_env.VecEnv,
)


def everything():
    """What each class and module holds, by name."""
    owners = [owner for root in ROOTS for owner in with_subclasses(root)]
    owners += [evaluation, callbacks, maskable_callbacks, sb3_contrib.ars.ars, sb3_contrib.ppo_mask.ppo_mask]
    return {owner: {name: value for name, value in vars(owner).items() if callable(value)} for owner in owners}


def test_undoing_leaves_everything_as_it_was():
    before = everything()
    with attached(Profiler()):
        assert is_attached()
        assert everything() != before
        on_policy(stable_baselines3.PPO).learn(64)
    assert not is_attached()
    assert everything() == before


def test_signatures_and_kinds_of_functions_stay():
    def described():
        functions = [
            stable_baselines3.PPO.train,
            stable_baselines3.PPO.collect_rollouts,
            stable_baselines3.SAC("MlpPolicy", "Pendulum-v1").collect_rollouts,
            stable_baselines3.PPO.save,
            policies.ActorCriticPolicy.forward,
            buffers.RolloutBuffer.get,
            buffers.ReplayBuffer.sample,
            vec_env.DummyVecEnv.step_wait,
            evaluation.evaluate_policy,
            sb3_contrib.RecurrentPPO.train,
            sb3_contrib.common.recurrent.policies.RecurrentActorCriticPolicy._process_sequence,
        ]
        return [
            (
                str(inspect.signature(f)),
                f.__name__,
                f.__qualname__,
                f.__module__,
                f.__doc__,
                inspect.isgeneratorfunction(f),
            )
            for f in functions
        ]

    alone = described()
    with attached(Profiler()):
        assert described() == alone


def test_models_are_saved_loaded_copied_and_pickled(tmp_path):
    with attached(Profiler()):
        model = on_policy(stable_baselines3.PPO).learn(64)
        model.save(tmp_path / "model")
        loaded = stable_baselines3.PPO.load(tmp_path / "model", env=model.get_env(), device="cpu")
        loaded.learn(64)
        assert isinstance(loaded, stable_baselines3.PPO)
        assert isinstance(loaded.policy, policies.ActorCriticPolicy)
        policy = on_policy(stable_baselines3.PPO).policy
        for other in (copy.deepcopy(policy), pickle.loads(pickle.dumps(policy))):
            assert torch.equal(other.value_net.weight, policy.value_net.weight)
        for function in (stable_baselines3.PPO.train, buffers.RolloutBuffer.get, evaluation.evaluate_policy):
            assert pickle.loads(pickle.dumps(function)) is function


SAVES = """
import sys
from rlprof import get_profiler
from rlprof.probes.registry import Attached
from rlprof.probes.stable_baselines3 import PROBE
Attached(get_profiler()).attach([PROBE])
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.policies import ActorCriticPolicy

class OwnPolicy(ActorCriticPolicy):
    def forward(self, *args, **kwargs):
        return super().forward(*args, **kwargs)

class OwnBuffer(RolloutBuffer):
    def add(self, *args, **kwargs):
        super().add(*args, **kwargs)

    def get(self, batch_size=None):
        yield from super().get(batch_size)

model = PPO(OwnPolicy, "CartPole-v1", rollout_buffer_class=OwnBuffer, n_steps=32, batch_size=32, device="cpu")
get_profiler().enable()
model.learn(32)
model.save(sys.argv[1])
forwards = get_profiler().snapshot().account("policy_forward").calls
model.learn(32)
assert get_profiler().snapshot().account("policy_forward").calls == forwards + 32 == 64
"""

LOADS = """
import sys
sys.modules["rlprof"] = None
import gymnasium
from stable_baselines3 import PPO
PPO.load(sys.argv[1], env=gymnasium.make("CartPole-v1"), device="cpu").learn(32)
"""


@pytest.mark.long
def test_a_model_with_classes_of_ones_own_loads_where_rlprof_is_not_installed(tmp_path):
    for program in (SAVES, LOADS):
        subprocess.run([sys.executable, "-c", program, str(tmp_path / "model.zip")], check=True)


def test_an_exception_of_the_program_comes_out_as_it_was():
    class Broken(stable_baselines3.PPO):
        def train(self):
            raise LookupError("mine")

    profiler = Profiler()
    with attached(profiler):
        profiler.enable()
        with pytest.raises(LookupError, match=r"^mine$"):
            on_policy(Broken).learn(64)
        on_policy(stable_baselines3.PPO).learn(64)
        profiler.disable()
    snapshot = profiler.snapshot()
    assert snapshot.open_spans == 0
    assert snapshot.account("rollout").calls == 2


@pytest.mark.long
def test_attaching_before_the_import_is_attaching_after_it():
    program = """
from rlprof import get_profiler
from rlprof.probes.registry import Attached
from rlprof.probes.stable_baselines3 import PROBE, is_attached
Attached(get_profiler()).attach([PROBE])
import sys
assert "numpy" not in sys.modules and "torch" not in sys.modules
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.callbacks import evaluate_policy as same
assert is_attached() and same is evaluate_policy and "profiled" in repr(evaluate_policy)
"""
    subprocess.run([sys.executable, "-c", program], check=True)

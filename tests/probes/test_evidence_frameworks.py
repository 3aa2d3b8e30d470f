"""What the probes know about trainings with stable-baselines3, TorchRL and worker processes."""

from __future__ import annotations

import textwrap

import generic_probes
import pytest
from sessions import facts_of, rlprof

from rlprof.probes.evidence import EvidenceReader
from rlprof.probes.stable_baselines3 import PROBE
from rlprof.session.evidence import Batch

pytest.importorskip("stable_baselines3")
pytest.importorskip("torchrl")

import quiet_torchrl
import stable_baselines3
import torch
from sb3_trainings import off_policy, on_policy
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize
from torchrl.data import LazyTensorStorage, ReplayBuffer
from trainings.torchrl_ppo import Args, Training

pytestmark = pytest.mark.filterwarnings("default")  # TorchRL warns of itself


def recorded(make, steps):
    """The evidence of a model's training."""
    with generic_probes.recorded(*generic_probes.GENERIC, PROBE) as profiler:
        model = make()
        model.learn(steps)
        return EvidenceReader(profiler).read(), model


def test_a_ppo_of_stable_baselines3():
    evidence, _ = recorded(lambda: on_policy(stable_baselines3.PPO), 128)
    assert evidence.batches.learning == (Batch(32, 0),), "as configured"
    assert evidence.batches.acting == (Batch(2, 0),)
    (optimizer,) = evidence.optimizers
    assert (optimizer.name, optimizer.number, optimizer.fused) == ("Adam", 1, None)
    (buffer,) = evidence.buffers
    assert (buffer.name, buffer.capacity, buffer.filled) == ("RolloutBuffer", 64, 64)


def test_wrappers_of_vectors_have_a_time_of_their_own():
    def make():
        envs = VecNormalize(make_vec_env("CartPole-v1", 2, seed=3))
        return stable_baselines3.PPO("MlpPolicy", envs, n_steps=64, batch_size=64, n_epochs=1, device="cpu")

    evidence, _ = recorded(make, 256)
    names = [level.name for level in evidence.levels]
    assert names[:2] == ["VecNormalize", "DummyVecEnv"]
    assert names[-1] == "CartPoleEnv"
    assert "Monitor" in names
    by_name = {level.name: level for level in evidence.levels}
    assert by_name["VecNormalize"].wraps
    assert not by_name["DummyVecEnv"].wraps
    assert by_name["CartPoleEnv"].calls == 2 * by_name["VecNormalize"].calls > 0
    (environment,) = evidence.environments
    assert (environment.kind, environment.envs) == ("sync", 2)
    assert environment.chain[0] == "VecNormalize"


@pytest.mark.long
def test_the_size_of_a_replay_buffer_that_is_not_full_is_known():
    evidence, model = recorded(lambda: off_policy(stable_baselines3.SAC, buffer_size=500), 60)
    (buffer,) = evidence.buffers
    assert (buffer.name, buffer.capacity, buffer.filled) == ("ReplayBuffer", 500, 60)
    held = model.replay_buffer
    assert buffer.bytes >= held.observations.nbytes + held.actions.nbytes + held.rewards.nbytes
    assert evidence.batches.learning == (Batch(256, 0),)
    assert sum(optimizer.number for optimizer in evidence.optimizers) == 3  # actor, critics, entropy


@pytest.mark.long
def test_the_losses_and_buffers_of_torchrl():
    training = Training(Args(frames=192, batch=64, minibatch=32, epochs=2))
    with quiet_torchrl.recorded() as profiler:
        training.run()
        buffer = ReplayBuffer(storage=LazyTensorStorage(100))
        buffer.extend(torch.ones(10, 3))
        evidence = EvidenceReader(profiler).read()
    assert evidence.batches.learning == (Batch(32, 12),)  # 3 batches of 64 frames, twice
    assert ("LazyTensorStorage", 100, 10) in [(one.name, one.capacity, one.filled) for one in evidence.buffers]


@pytest.mark.long
def test_worker_processes_report_their_threads_and_wrappers(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        textwrap.dedent(
            """
            import gymnasium, numpy, torch

            class Predicts(gymnasium.Wrapper):
                def step(self, action):
                    torch.ones(300, 300) @ torch.ones(300, 300)
                    return self.env.step(action)

            def make():
                torch.set_num_threads(2)
                return Predicts(gymnasium.make("CartPole-v1"))

            if __name__ == "__main__":
                envs = gymnasium.vector.AsyncVectorEnv([make] * 2, context="fork")
                envs.reset(seed=1)
                for _ in range(17 * 12):
                    envs.step(numpy.zeros(2, dtype=int))
                envs.close()
            """
        )
    )
    rlprof("run", "--dir", tmp_path / "runs", "--quiet", script)
    (folder,) = (tmp_path / "runs").glob("train_*")
    evidence = facts_of(folder).evidence
    assert [worker.torch_threads for worker in evidence.workers] == [2, 2]
    assert all(0 <= worker.helpers_cpu_ns < worker.cpu_ns for worker in evidence.workers)
    levels = {level.name: level for level in evidence.levels}
    assert levels["AsyncVectorEnv"].calls == 12
    assert 0 < levels["CartPoleEnv"].calls <= levels["Predicts"].calls <= 2 * 13
    (environment,) = (one for one in evidence.environments if one.kind == "workers")
    assert environment.envs == 2

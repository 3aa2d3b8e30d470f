"""PPO of TorchRL on CartPole: its actor, critic, collector, buffer and losses."""

from __future__ import annotations

from typing import Any

import torch
from ppo import mlp
from tensordict.nn import TensorDictModule
from torch.distributions import Categorical
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, ReplayBuffer
from torchrl.data.replay_buffers.samplers import SamplerWithoutReplacement
from torchrl.envs import GymEnv, SerialEnv
from torchrl.modules import ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

FRAMES = 256


def make_env() -> GymEnv:
    return GymEnv("CartPole-v1", categorical_action_encoding=True)


class Learner:
    def __init__(self, iterations: int, size: int) -> None:
        self.actor = ProbabilisticActor(
            TensorDictModule(mlp(4, 2), in_keys=["observation"], out_keys=["logits"]),
            in_keys=["logits"],
            distribution_class=Categorical,
            return_log_prob=True,
        )
        critic = ValueOperator(mlp(4, 1), in_keys=["observation"])
        self.collector = Collector(
            SerialEnv(4, make_env),
            self.actor,
            frames_per_batch=FRAMES,
            total_frames=FRAMES * iterations,
            auto_register_policy_transforms=False,
        )
        self.buffer = ReplayBuffer(
            storage=LazyTensorStorage(FRAMES), sampler=SamplerWithoutReplacement(), batch_size=size
        )
        self.advantage = GAE(gamma=0.99, lmbda=0.95, value_network=critic, average_gae=True)
        self.loss = ClipPPOLoss(self.actor, critic, clip_epsilon=0.2, entropy_coeff=0.01, critic_coeff=0.5)
        self.optimizer = torch.optim.Adam(self.loss.parameters(), lr=2.5e-4)

    def step(self, minibatch: Any) -> Any:
        losses = self.loss(minibatch)
        loss = losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return losses

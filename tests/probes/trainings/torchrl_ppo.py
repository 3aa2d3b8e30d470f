"""A PPO on CartPole as TorchRL's own examples write it, with sleeps that may be planted in four places.

python torchrl_ppo.py [--frames 4096] [--step 0.01] [--policy 0.01] [--gae 0.01] [--optimizer 0.01]
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from typing import Any

import torch
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, ReplayBuffer, SamplerWithoutReplacement
from torchrl.envs import Compose, GymEnv, StepCounter, TransformedEnv
from torchrl.modules import OneHotCategorical, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE


@dataclass
class Args:
    frames: int = 4096
    batch: int = 512
    minibatch: int = 64
    epochs: int = 4
    width: int = 64
    seed: int = 0
    step: float = 0.0
    """Seconds of sleep in each env step; the others likewise."""
    policy: float = 0.0
    gae: float = 0.0
    optimizer: float = 0.0


def nap(operation: str, seconds: float) -> None:
    """Sleep in an operation; who plants delays puts a clock of its own here."""
    del operation
    time.sleep(seconds)


class SlowGymEnv(GymEnv):
    delay = 0.0

    def _step(self, tensordict: Any) -> Any:
        nap("env_step", self.delay)
        return super()._step(tensordict)


class SlowGAE(GAE):
    delay = 0.0

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        nap("advantage", self.delay)
        return super().forward(*args, **kwargs)


class SlowAdam(torch.optim.Adam):
    delay = 0.0

    def step(self, closure: Any = None) -> Any:
        nap("optimizer_step", self.delay)
        return super().step(closure)


class Actor(nn.Module):
    """Sleeps only while it collects: in the update its forward is the loss's work."""

    def __init__(self, inputs: int, width: int, outputs: int, delay: float) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, outputs)
        )
        self.delay = delay

    def forward(self, observation: torch.Tensor) -> torch.Tensor:
        if not torch.is_grad_enabled():
            nap("policy_forward", self.delay)
        logits: torch.Tensor = self.net(observation)
        return logits


class Training:
    def __init__(self, args: Args) -> None:
        self.args = args
        torch.manual_seed(args.seed)
        env = TransformedEnv(SlowGymEnv("CartPole-v1"), Compose(StepCounter()))
        env.base_env.delay = args.step
        env.set_seed(args.seed)
        actor = ProbabilisticActor(
            TensorDictModule(Actor(4, args.width, 2, args.policy), in_keys=["observation"], out_keys=["logits"]),
            in_keys=["logits"],
            spec=env.action_spec,
            distribution_class=OneHotCategorical,
            return_log_prob=True,
        )
        critic = ValueOperator(
            nn.Sequential(nn.Linear(4, args.width), nn.Tanh(), nn.Linear(args.width, 1)), in_keys=["observation"]
        )
        self.collector = Collector(
            env,
            actor,
            frames_per_batch=args.batch,
            total_frames=args.frames,
            auto_register_policy_transforms=True,
        )
        self.buffer = ReplayBuffer(
            storage=LazyTensorStorage(args.batch), sampler=SamplerWithoutReplacement(), batch_size=args.minibatch
        )
        self.advantage = SlowGAE(gamma=0.99, lmbda=0.95, value_network=critic, average_gae=True)
        self.advantage.delay = args.gae
        self.loss_module = ClipPPOLoss(actor, critic, clip_epsilon=0.2, entropy_coeff=0.01)
        self.optimizer = SlowAdam(self.loss_module.parameters(), lr=3e-4)
        self.optimizer.delay = args.optimizer

    def run(self) -> tuple[list[float], dict[str, torch.Tensor]]:
        """The episode returns and the weights."""
        returns: list[float] = []
        episode = 0.0
        for batch in self.collector:
            rewards, dones = batch["next", "reward"].flatten().tolist(), batch["next", "done"].flatten().tolist()
            for reward, done in zip(rewards, dones):
                episode += reward
                if done:
                    returns.append(episode)
                    episode = 0.0
            for _ in range(self.args.epochs):
                self.advantage(batch)
                self.buffer.extend(batch.reshape(-1))
                for _ in range(self.args.batch // self.args.minibatch):
                    self.learn(self.buffer.sample())
        self.collector.shutdown()
        return returns, {name: value.detach().clone() for name, value in self.loss_module.named_parameters()}

    def learn(self, minibatch: Any) -> None:
        losses = self.loss_module(minibatch)
        total = losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]
        total.backward()
        nn.utils.clip_grad_norm_(self.loss_module.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()


def main() -> None:
    parser = argparse.ArgumentParser()
    for name, value in vars(Args()).items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    returns, _ = Training(Args(**vars(parser.parse_args()))).run()
    print(f"{len(returns)} episodes, the last of {returns[-1]:.0f} steps" if returns else "no episode")  # noqa: T201


if __name__ == "__main__":
    main()

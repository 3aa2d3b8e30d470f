"""PPO of TorchRL on CartPole, after its own example."""

from __future__ import annotations

from typing import Any

import torch
from parts import Adam, Env, Network, Stamped
from planted import arguments, planted, stamped, tell
from tensordict.nn import TensorDictModule
from torch import nn
from torch.distributions import Categorical
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, ReplayBuffer
from torchrl.data.replay_buffers.samplers import SamplerWithoutReplacement
from torchrl.envs import GymWrapper, SerialEnv, StepCounter, TransformedEnv
from torchrl.modules import ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE
from turns import turn

EPOCHS, MINIBATCHES = 4, 4


class Envs(TransformedEnv):
    def step_and_maybe_reset(self, tensordict: Any) -> Any:
        with stamped("env"):
            return super().step_and_maybe_reset(tensordict)


class Actor(Stamped, ProbabilisticActor):
    pass


class Advantage(GAE):
    def forward(self, tensordict: Any, **kwargs: Any) -> Any:
        with stamped("advantage"):
            for _ in range(tensordict.shape[-1]):  # once per step, as if inside its loop
                planted("advantage")
            return super().forward(tensordict, **kwargs)


def main() -> None:
    options = arguments(__doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    make = lambda: GymWrapper(Env(), categorical_action_encoding=True)  # noqa: E731 - common in trainings
    env = Envs(SerialEnv(options.envs, make), StepCounter(max_steps=500))
    env.set_seed(options.seed)
    net = Network(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))
    actor = Actor(
        TensorDictModule(net, in_keys=["observation"], out_keys=["logits"]),
        in_keys=["logits"],
        distribution_class=Categorical,
        return_log_prob=True,
    )
    critic = ValueOperator(nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1)), in_keys=["observation"])
    frames = options.steps * options.envs
    collector = Collector(
        env,
        actor,
        frames_per_batch=frames,
        total_frames=frames * options.iterations,
        auto_register_policy_transforms=False,
    )
    buffer = ReplayBuffer(
        storage=LazyTensorStorage(frames), sampler=SamplerWithoutReplacement(), batch_size=frames // MINIBATCHES
    )
    advantage = Advantage(gamma=0.99, lmbda=0.95, value_network=critic, average_gae=True)
    loss_module = ClipPPOLoss(actor, critic, clip_epsilon=0.2, entropy_coeff=0.01, critic_coeff=0.5)
    optimizer = Adam(loss_module.parameters(), lr=2.5e-4)
    turn()
    for batch in collector:
        for _ in range(EPOCHS):
            with torch.no_grad():
                advantage(batch)
            buffer.extend(batch.reshape(-1))
            for _ in range(MINIBATCHES):
                losses = loss_module(buffer.sample())
                loss = losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]
                loss.backward()
                nn.utils.clip_grad_norm_(loss_module.parameters(), 0.5)
                optimizer.step()
                optimizer.zero_grad()
        turn()
    collector.shutdown()
    tell()


if __name__ == "__main__":
    main()

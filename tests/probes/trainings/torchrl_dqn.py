"""A DQN on CartPole with TorchRL: a collector that fills a buffer, and a target network."""

from __future__ import annotations

import torch
from tensordict.nn import TensorDictSequential
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
from torchrl.envs import GymEnv
from torchrl.modules import MLP, EGreedyModule, QValueActor
from torchrl.objectives import DQNLoss, SoftUpdate


def train(frames: int = 192, batch: int = 32) -> dict[str, torch.Tensor]:
    torch.manual_seed(1)
    env = GymEnv("CartPole-v1")
    env.set_seed(1)
    actor = QValueActor(MLP(in_features=4, out_features=2, num_cells=[32]), spec=env.action_spec)
    policy = TensorDictSequential(actor, EGreedyModule(env.action_spec, annealing_num_steps=frames))
    collector = Collector(
        env,
        policy,
        frames_per_batch=batch,
        total_frames=frames,
        init_random_frames=2 * batch,
        auto_register_policy_transforms=True,
    )
    buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(frames), batch_size=16)
    loss_module = DQNLoss(actor, action_space=env.action_spec, delay_value=True)
    loss_module.make_value_estimator(gamma=0.99)
    target = SoftUpdate(loss_module, eps=0.95)
    optimizer = torch.optim.Adam(loss_module.parameters(), lr=1e-3)
    for data in collector:
        policy[1].step(data.numel())
        buffer.extend(data)
        for _ in range(4):
            loss_module(buffer.sample())["loss"].backward()
            optimizer.step()
            optimizer.zero_grad()
            target.step()
    collector.shutdown()
    return {name: value.detach().clone() for name, value in loss_module.named_parameters()}


if __name__ == "__main__":
    train()

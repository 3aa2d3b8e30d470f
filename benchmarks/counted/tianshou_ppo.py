"""PPO of tianshou with a test collector: an epoch trains, then tests for whole episodes."""

from __future__ import annotations

from typing import Any

import own
import torch
from parts import Env, network
from tianshou.algorithm import PPO
from tianshou.algorithm.modelfree.reinforce import ProbabilisticActorPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OnPolicyTrainer, OnPolicyTrainerParams

ENVS = 4


class Actor(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = network(4, 2)

    def forward(self, obs: Any, state: Any = None, info: Any = None) -> Any:
        return torch.softmax(self.net(torch.as_tensor(obs)), 1), state


class Critic(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = network(4, 1)

    def forward(self, obs: Any, **_: Any) -> Any:
        return self.net(torch.as_tensor(obs))


class CountingTrainer(OnPolicyTrainer):
    """Counts the steps that tianshou reports as collected for training."""

    def _training_step(self) -> Any:
        own.resume()
        result = super()._training_step()
        own.pause()
        own.steps += result.get_env_step_advancement()
        own.iterations += 1
        return result


def main() -> None:
    train, test = (DummyVectorEnv([Env] * count) for count in (ENVS, 2))
    policy = ProbabilisticActorPolicy(
        actor=Actor(), dist_fn=torch.distributions.Categorical, action_space=Env.action_space, action_scaling=False
    )
    algorithm = PPO(policy=policy, critic=Critic(), optim=AdamOptimizerFactory(lr=1e-3))
    parameters = OnPolicyTrainerParams(
        training_collector=Collector(algorithm, train, VectorReplayBuffer(2000, ENVS)),
        test_collector=Collector(algorithm, test),
        max_epochs=4,
        epoch_num_steps=512,
        collection_step_num_env_steps=128,
        update_step_num_repetitions=4,
        test_step_num_episodes=4,
        batch_size=64,
        show_progress=False,
        verbose=False,
    )
    CountingTrainer(algorithm, parameters).run()
    own.write()


if __name__ == "__main__":
    main()

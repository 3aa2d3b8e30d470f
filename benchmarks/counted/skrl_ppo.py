"""PPO of skrl."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import own
from parts import Env, network
from skrl.agents.torch.ppo import PPO
from skrl.envs.wrappers.torch import wrap_env
from skrl.memories.torch import RandomMemory
from skrl.models.torch import CategoricalMixin, DeterministicMixin, Model
from skrl.trainers.torch import SequentialTrainer

ENVS, ROLLOUTS, TIMESTEPS = 4, 32, 640


class Network(Model):
    mixin: Any
    outputs: int

    def __init__(self, env: Any) -> None:
        Model.__init__(self, observation_space=env.observation_space, action_space=env.action_space, device="cpu")
        self.mixin.__init__(self)
        self.net = network(4, self.outputs)

    def compute(self, inputs: Any, role: str = "") -> Any:
        return self.net(inputs["observations"]), {}


class Policy(CategoricalMixin, Network):
    mixin, outputs = CategoricalMixin, 2


class Value(DeterministicMixin, Network):
    mixin, outputs = DeterministicMixin, 1


class CountingPPO(PPO):
    def pre_interaction(self, **keywords: Any) -> None:
        if own.steps == 0:
            own.resume()
        super().pre_interaction(**keywords)

    def record_transition(self, **keywords: Any) -> None:
        own.steps += ENVS
        super().record_transition(**keywords)

    def update(self, **keywords: Any) -> None:
        super().update(**keywords)
        own.iterations += 1


def main() -> None:
    env = wrap_env(gym.vector.SyncVectorEnv([Env] * ENVS), verbose=False)
    agent = CountingPPO(
        models={"policy": Policy(env), "value": Value(env)},
        memory=RandomMemory(memory_size=ROLLOUTS, num_envs=ENVS, device="cpu"),
        cfg={"rollouts": ROLLOUTS, "learning_epochs": 4, "mini_batches": 2, "experiment": {"write_interval": 0}},
        observation_space=env.observation_space,
        action_space=env.action_space,
        device="cpu",
    )
    trainer = SequentialTrainer(
        env=env, agents=agent, cfg={"timesteps": TIMESTEPS, "headless": True, "disable_progressbar": True}
    )
    trainer.train()
    own.write()


if __name__ == "__main__":
    main()

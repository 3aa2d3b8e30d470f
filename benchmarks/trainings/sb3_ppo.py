"""stable-baselines3's PPO on CartPole, as its users write it."""

from __future__ import annotations

from typing import Any

import torch
from parts import Adam, Env
from planted import arguments, planted, stamped, tell
from sb3_parts import Envs, Turns
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.policies import ActorCriticPolicy
from turns import turn


class Policy(ActorCriticPolicy):
    def forward(self, obs: Any, deterministic: bool = False) -> Any:
        planted("policy")
        return super().forward(obs, deterministic)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with stamped("policy"):
            return super().__call__(*args, **kwargs)


class Buffer(RolloutBuffer):
    def compute_returns_and_advantage(self, last_values: Any, dones: Any) -> None:
        with stamped("advantage"):
            for _ in range(self.buffer_size):  # once a step, as if inside its loop
                planted("advantage")
            super().compute_returns_and_advantage(last_values, dones)


def main() -> None:
    options = arguments(__doc__)
    torch.set_num_threads(1)
    model = PPO(
        Policy,
        make_vec_env(Env, n_envs=options.envs, seed=options.seed, vec_env_cls=Envs),
        n_steps=options.steps,
        batch_size=options.steps * options.envs // 4,
        n_epochs=4,
        rollout_buffer_class=Buffer,
        policy_kwargs={"optimizer_class": Adam},
        seed=options.seed,
        device="cpu",
    )
    model.learn(options.iterations * options.steps * options.envs, callback=Turns())
    turn()
    tell()


if __name__ == "__main__":
    main()

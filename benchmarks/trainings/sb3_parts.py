"""The parts that the two trainings with stable-baselines3's loop have in common."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import torch
from parts import Adam, Env
from planted import planted, stamped, tell
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv
from turns import turn


class Envs(DummyVecEnv):
    def step(self, actions: Any) -> Any:
        with stamped("env"):
            return super().step(actions)


class Acts:
    """Makes a policy plant and stamp its forward passes of the rollout."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        planted("policy")
        return super().forward(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with stamped("policy"):
            return super().__call__(*args, **kwargs)


def estimating(base: Any) -> Any:
    """A rollout buffer that plants and stamps its advantages."""

    class Buffer(base):
        def compute_returns_and_advantage(self, last_values: Any, dones: Any) -> None:
            with stamped("advantage"):
                for _ in range(self.buffer_size):  # once per step, as if inside the buffer's own loop
                    planted("advantage")
                super().compute_returns_and_advantage(last_values, dones)

    return Buffer


class Turns(BaseCallback):
    def _on_rollout_start(self) -> None:
        turn()

    def _on_step(self) -> bool:
        return True


def make_model(algorithm: Any, policy: type, options: Namespace, network: dict[str, Any], **more: Any) -> Any:
    torch.set_num_threads(1)
    return algorithm(
        policy,
        make_vec_env(Env, n_envs=options.envs, seed=options.seed, vec_env_cls=Envs),
        n_steps=options.steps,
        batch_size=options.steps * options.envs // 4,
        n_epochs=4,
        policy_kwargs={"optimizer_class": Adam, **network},
        seed=options.seed,
        device="cpu",
        **more,
    )


def learn(model: Any, options: Namespace) -> None:
    model.learn(options.iterations * options.steps * options.envs, callback=Turns())
    turn()
    tell()

"""Parts of the trainings with the loop of stable-baselines3."""

from __future__ import annotations

from typing import Any

import torch
from parts import Adam, Env
from planted import arguments, planted, stamped, write
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv
from turns import turn


class Envs(DummyVecEnv):
    def step(self, actions: Any) -> Any:
        with stamped("env"):
            return super().step(actions)


def timed_policy(base: Any) -> Any:
    """A subclass of a policy that times its calls and has a place for delays in its forward pass."""

    class Policy(base):
        def forward(self, *args: Any, **kwargs: Any) -> Any:
            planted("policy")
            return super().forward(*args, **kwargs)

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            with stamped("policy"):
                return super().__call__(*args, **kwargs)

    return Policy


def timed_buffer(base: Any) -> Any:
    """A subclass of a rollout buffer that times its advantages and has a place for delays there."""

    class Buffer(base):
        def compute_returns_and_advantage(self, last_values: Any, dones: Any) -> None:
            with stamped("advantage"):
                for _ in range(self.buffer_size):  # once per step, as if inside its loop
                    planted("advantage")
                super().compute_returns_and_advantage(last_values, dones)

    return Buffer


class Turns(BaseCallback):
    def _on_rollout_start(self) -> None:
        turn()

    def _on_step(self) -> bool:
        return True


def train(explanation: str | None, algorithm: Any, policy: Any, prepare: Any = None, **settings: Any) -> None:
    """Train as users do. `prepare` changes the model before its first iteration."""
    options = arguments(explanation)
    torch.set_num_threads(1)
    policy_kwargs = {"optimizer_class": Adam, **settings.pop("policy_kwargs", {})}
    model = algorithm(
        timed_policy(policy),
        make_vec_env(Env, n_envs=options.envs, seed=options.seed, vec_env_cls=Envs),
        n_steps=options.steps,
        batch_size=options.steps * options.envs // 4,
        n_epochs=4,
        policy_kwargs=policy_kwargs,
        seed=options.seed,
        device="cpu",
        **settings,
    )
    if prepare is not None:
        prepare(model)
    model.learn(options.iterations * options.steps * options.envs, callback=Turns())
    turn()
    write()

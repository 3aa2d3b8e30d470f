"""What the trainings with stable-baselines3's loop are made of."""

from __future__ import annotations

from typing import Any

from planted import stamped
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv
from turns import turn


class Envs(DummyVecEnv):
    def step(self, actions: Any) -> Any:
        with stamped("env"):
            return super().step(actions)


class Turns(BaseCallback):
    def _on_rollout_start(self) -> None:
        turn()

    def _on_step(self) -> bool:
        return True

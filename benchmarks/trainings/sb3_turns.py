"""The turns of trainings whose loop is stable-baselines3's."""

from __future__ import annotations

from stable_baselines3.common.callbacks import BaseCallback
from turns import turn


class Turns(BaseCallback):
    def _on_rollout_start(self) -> None:
        turn()

    def _on_step(self) -> bool:
        return True

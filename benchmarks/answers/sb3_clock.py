"""A callback that measures a training of stable-baselines3."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import stopwatch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnvWrapper


class Clock(BaseCallback):
    """Starts with the first step that is learned from. `updates` measures what happens between rollouts."""

    def __init__(self, updates: bool = False) -> None:
        super().__init__()
        self.updates = updates
        self.counted: int | None = None
        self.open = ExitStack()

    def _on_rollout_start(self) -> None:
        self.open.close()
        if self.counted is not None:
            self.count()
        elif self.num_timesteps >= getattr(self.model, "learning_starts", 0):
            self.counted = self.num_timesteps
            stopwatch.start()

    def _on_rollout_end(self) -> None:
        if self.updates:
            self.open.enter_context(stopwatch.section())

    def _on_training_end(self) -> None:
        self.open.close()
        self.count()
        stopwatch.write()

    def _on_step(self) -> bool:
        return True

    def count(self) -> None:
        stopwatch.iteration(self.num_timesteps - (self.counted or 0))
        self.counted = self.num_timesteps


class TimedEnvs(VecEnvWrapper):
    """Times the steps of vectorized environments."""

    def reset(self) -> Any:
        return self.venv.reset()

    def step_async(self, actions: Any) -> None:
        with stopwatch.section():
            self.venv.step_async(actions)

    def step_wait(self) -> Any:
        with stopwatch.section():
            return self.venv.step_wait()

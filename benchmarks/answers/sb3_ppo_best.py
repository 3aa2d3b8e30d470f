"""PPO of stable-baselines3 on CartPole that remembers its policy."""

from __future__ import annotations

import copy
from typing import Any

import stopwatch
import torch
from sb3_clock import Clock
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env


class Remember(BaseCallback):
    """Keeps the policy with which the best reward was collected."""

    def __init__(self, each_step: bool) -> None:
        super().__init__()
        self.each_step = each_step
        self.policy: Any = None

    def _on_step(self) -> bool:
        if self.each_step:
            self.remember()
        return True

    def _on_rollout_end(self) -> None:
        if not self.each_step:
            self.remember()

    def remember(self) -> None:
        with stopwatch.section():
            self.policy = copy.deepcopy(self.model.policy)


def main() -> None:
    options = stopwatch.arguments(120, __doc__)
    torch.set_num_threads(1)
    envs = make_vec_env("CartPole-v1", n_envs=8, seed=options.seed)
    model = PPO("MlpPolicy", envs, n_steps=32, batch_size=64, n_epochs=4, device="cpu", seed=options.seed)
    model.learn(256 * options.iterations, callback=[Remember(each_step=not options.fix), Clock()])


if __name__ == "__main__":
    main()

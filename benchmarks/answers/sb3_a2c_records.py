"""A2C of stable-baselines3 on CartPole that records what its policy does."""

from __future__ import annotations

import tempfile

import stopwatch
import torch
from sb3_clock import Clock
from stable_baselines3 import A2C
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import configure


class Records(BaseCallback):
    def __init__(self, every: int) -> None:
        super().__init__()
        self.every = every

    def _on_step(self) -> bool:
        if self.n_calls % self.every == 0:
            with stopwatch.section():
                for name, parameter in self.model.policy.named_parameters():
                    self.logger.record(f"weights/{name}", parameter.norm().item())
                self.logger.record("reward", float(self.locals["rewards"].mean()))
                self.logger.dump(self.num_timesteps)
        return True


def main() -> None:
    options = stopwatch.arguments(900, __doc__)
    torch.set_num_threads(1)
    envs = make_vec_env("CartPole-v1", n_envs=4, seed=options.seed)
    model = A2C("MlpPolicy", envs, n_steps=16, device="cpu", seed=options.seed)
    model.set_logger(configure(tempfile.mkdtemp(), ["csv", "json"]))
    model.learn(64 * options.iterations, callback=[Clock(), Records(every=100 if options.fix else 1)])


if __name__ == "__main__":
    main()

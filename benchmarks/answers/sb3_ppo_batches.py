"""PPO of stable-baselines3 on CartPole."""

from __future__ import annotations

import stopwatch
import torch
from sb3_clock import Clock
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env


def main() -> None:
    options = stopwatch.arguments(54, __doc__)
    torch.set_num_threads(1)
    envs = make_vec_env("CartPole-v1", n_envs=8, seed=options.seed)
    size = 128 if options.fix else 16
    model = PPO("MlpPolicy", envs, n_steps=64, batch_size=size, n_epochs=3, device="cpu", seed=options.seed)
    model.learn(512 * options.iterations, callback=Clock(updates=True))


if __name__ == "__main__":
    main()

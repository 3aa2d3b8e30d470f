"""PPO of stable-baselines3 on CartPole."""

from __future__ import annotations

import stopwatch
import torch
from sb3_clock import Clock
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env


def main() -> None:
    options = stopwatch.arguments(150, __doc__)
    torch.set_num_threads(1)
    envs = make_vec_env("CartPole-v1", n_envs=16, seed=options.seed)
    model = PPO("MlpPolicy", envs, n_steps=64, batch_size=256, n_epochs=4, device="cpu", seed=options.seed)
    model.learn(1024 * options.iterations, callback=Clock())


if __name__ == "__main__":
    main()

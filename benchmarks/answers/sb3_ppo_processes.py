"""PPO of stable-baselines3 on CartPole, with a process for each environment."""

from __future__ import annotations

import stopwatch
import torch
from sb3_clock import Clock, TimedEnvs
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv


def main() -> None:
    options = stopwatch.arguments(80, __doc__)
    torch.set_num_threads(1)
    vector = DummyVecEnv if options.fix else SubprocVecEnv
    envs = TimedEnvs(make_vec_env("CartPole-v1", n_envs=8, seed=options.seed, vec_env_cls=vector))
    model = PPO("MlpPolicy", envs, n_steps=128, batch_size=256, n_epochs=3, device="cpu", seed=options.seed)
    model.learn(1024 * options.iterations, callback=Clock())
    envs.close()


if __name__ == "__main__":
    main()

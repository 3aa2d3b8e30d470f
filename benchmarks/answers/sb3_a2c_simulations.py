"""A2C of stable-baselines3 on four simulations."""

from __future__ import annotations

from functools import partial

import stopwatch
import torch
from sb3_clock import Clock, TimedEnvs
from stable_baselines3 import A2C
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv
from worlds import Simulation


def main() -> None:
    options = stopwatch.arguments(60, __doc__)
    torch.set_num_threads(1)
    vector = SubprocVecEnv if options.fix else DummyVecEnv
    envs = TimedEnvs(vector([partial(Simulation, 16, 100, 6000)] * 4))
    model = A2C("MlpPolicy", envs, n_steps=32, device="cpu", seed=options.seed)
    model.learn(128 * options.iterations, callback=Clock())
    envs.close()


if __name__ == "__main__":
    main()

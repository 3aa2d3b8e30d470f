"""PPO of stable-baselines3 in four processes, on terrains of different difficulty."""

from __future__ import annotations

from functools import partial

import stopwatch
import torch
from sb3_clock import Clock, TimedEnvs
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import SubprocVecEnv
from worlds import Simulation

TERRAINS = (500, 500, 20000, 500)


def main() -> None:
    options = stopwatch.arguments(30, __doc__)
    torch.set_num_threads(1)
    terrains = [min(500, terrain) for terrain in TERRAINS] if options.fix else TERRAINS
    envs = TimedEnvs(SubprocVecEnv([partial(Simulation, 16, 100, terrain) for terrain in terrains]))
    model = PPO("MlpPolicy", envs, n_steps=64, batch_size=64, n_epochs=4, device="cpu", seed=options.seed)
    model.learn(256 * options.iterations, callback=Clock())
    envs.close()


if __name__ == "__main__":
    main()

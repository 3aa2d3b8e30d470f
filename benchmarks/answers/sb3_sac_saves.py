"""SAC of stable-baselines3 on Pendulum that can be resumed."""

from __future__ import annotations

import tempfile

import gymnasium as gym
import stopwatch
import torch
from sb3_clock import Clock
from stable_baselines3 import SAC
from stable_baselines3.common.callbacks import CheckpointCallback


class Saves(CheckpointCallback):
    def _on_step(self) -> bool:
        with stopwatch.section():
            return super()._on_step()


def main() -> None:
    options = stopwatch.arguments(20, __doc__)
    torch.set_num_threads(1)
    env = gym.make("Pendulum-v1")
    model = SAC("MlpPolicy", env, learning_starts=100, buffer_size=50_000, batch_size=64, device="cpu")
    every = 500 if options.fix else 5
    saves = Saves(every, tempfile.mkdtemp(), save_replay_buffer=True)
    model.learn(100 + 50 * options.iterations, callback=[Clock(), saves])


if __name__ == "__main__":
    main()

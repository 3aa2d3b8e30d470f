"""DQN of stable-baselines3 on CartPole, with the settings of the RL Zoo."""

from __future__ import annotations

import gymnasium as gym
import stopwatch
import torch
from sb3_clock import Clock
from stable_baselines3 import DQN


def main() -> None:
    options = stopwatch.arguments(30, __doc__)
    torch.set_num_threads(1)
    env = gym.make("CartPole-v1")
    model = DQN(
        "MlpPolicy",
        env,
        learning_rate=2.3e-3,
        batch_size=64,
        buffer_size=100_000,
        learning_starts=1000,
        gamma=0.99,
        target_update_interval=10,
        train_freq=256,
        gradient_steps=128,
        policy_kwargs={"net_arch": [256, 256]},
        device="cpu",
        seed=options.seed,
    )
    model.learn(1000 + 256 * options.iterations, callback=Clock())


if __name__ == "__main__":
    main()

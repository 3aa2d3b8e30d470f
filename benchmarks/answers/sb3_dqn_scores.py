"""DQN of stable-baselines3 on CartPole with an evaluation."""

from __future__ import annotations

import gymnasium as gym
import stopwatch
import torch
from sb3_clock import Clock
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.monitor import Monitor


class Evaluation(EvalCallback):
    def _on_step(self) -> bool:
        if self.n_calls % self.eval_freq:
            return True
        with stopwatch.section(), stopwatch.outside():
            return super()._on_step()


def main() -> None:
    options = stopwatch.arguments(100, __doc__)
    torch.set_num_threads(1)
    env, test = (Monitor(gym.make("CartPole-v1", max_episode_steps=200)) for _ in range(2))
    every = 2000 if options.fix else 200
    model = DQN("MlpPolicy", env, learning_starts=200, train_freq=4, device="cpu", seed=options.seed)
    evaluation = Evaluation(test, n_eval_episodes=20, eval_freq=every, verbose=0)
    model.learn(200 + 200 * options.iterations, callback=[Clock(), evaluation])


if __name__ == "__main__":
    main()

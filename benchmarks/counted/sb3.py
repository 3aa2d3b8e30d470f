"""PPO of stable-baselines3 on worker processes. The first argument is their start method."""

from __future__ import annotations

import sys

import own
from parts import make_env
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import SubprocVecEnv


class Count(BaseCallback):
    def _on_training_start(self) -> None:
        own.resume()

    def _on_step(self) -> bool:
        own.steps += self.training_env.num_envs
        return True

    def _on_rollout_end(self) -> None:
        own.iterations += 1


def main() -> None:
    envs = SubprocVecEnv([make_env, make_env], start_method=sys.argv[1])
    model = PPO("MlpPolicy", envs, n_steps=256, batch_size=64, n_epochs=4, device="cpu", seed=1)
    model.learn(5120, callback=Count())
    own.write()
    envs.close()


if __name__ == "__main__":
    main()

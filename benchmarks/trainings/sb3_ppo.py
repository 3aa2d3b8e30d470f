"""PPO of stable-baselines3 on CartPole, as its users write it."""

from __future__ import annotations

from sb3_parts import timed_buffer, train
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.policies import ActorCriticPolicy

if __name__ == "__main__":
    train(__doc__, PPO, ActorCriticPolicy, rollout_buffer_class=timed_buffer(RolloutBuffer))

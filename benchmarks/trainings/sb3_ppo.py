"""stable-baselines3's PPO on CartPole, as its users write it."""

from __future__ import annotations

from planted import arguments
from sb3_parts import Acts, estimating, learn, make_model
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.policies import ActorCriticPolicy


class Policy(Acts, ActorCriticPolicy):
    pass


if __name__ == "__main__":
    options = arguments(__doc__)
    learn(make_model(PPO, Policy, options, {}, rollout_buffer_class=estimating(RolloutBuffer)), options)

"""sb3-contrib's RecurrentPPO on CartPole, as its users write it."""

from __future__ import annotations

from typing import Any

import torch
from parts import Adam, Env
from planted import arguments, planted, tell
from sb3_contrib import RecurrentPPO
from sb3_contrib.common.recurrent.buffers import RecurrentRolloutBuffer
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy
from sb3_turns import Turns
from stable_baselines3.common.env_util import make_vec_env
from turns import turn


class Policy(RecurrentActorCriticPolicy):
    def forward(self, obs: Any, lstm_states: Any, episode_starts: Any, deterministic: bool = False) -> Any:
        planted("policy")
        return super().forward(obs, lstm_states, episode_starts, deterministic)


class Buffer(RecurrentRolloutBuffer):
    def compute_returns_and_advantage(self, last_values: Any, dones: Any) -> None:
        for _ in range(self.buffer_size):  # once a step, as if inside its loop
            planted("advantage")
        super().compute_returns_and_advantage(last_values, dones)


def main() -> None:
    options = arguments(__doc__)
    torch.set_num_threads(1)
    model = RecurrentPPO(
        Policy,
        make_vec_env(Env, n_envs=options.envs, seed=options.seed),
        n_steps=options.steps,
        batch_size=options.steps * options.envs // 4,
        n_epochs=4,
        policy_kwargs={"optimizer_class": Adam, "lstm_hidden_size": 64},
        seed=options.seed,
        device="cpu",
    )
    buffer = model.rollout_buffer
    buffer.__class__ = Buffer  # it takes no class of one's own
    model.learn(options.iterations * options.steps * options.envs, callback=Turns())
    turn()
    tell()


if __name__ == "__main__":
    main()

"""sb3-contrib's RecurrentPPO on CartPole, as its users write it."""

from __future__ import annotations

from typing import Any

import torch
from parts import Adam, Env
from planted import arguments, planted, stamped, tell
from sb3_contrib import RecurrentPPO
from sb3_contrib.common.recurrent.buffers import RecurrentRolloutBuffer
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy
from sb3_parts import Envs, Turns
from stable_baselines3.common.env_util import make_vec_env
from torch import nn
from turns import pause, turn

LSTM_STEPS = 256
"""Between two pauses: one for each step of an environment, so an update is long."""


class LSTM(nn.LSTM):
    steps = 0

    def forward(self, input: Any, hx: Any = None) -> Any:
        found, state = super().forward(input, hx)
        LSTM.steps += 1
        if LSTM.steps % LSTM_STEPS == 0:
            pause()
            if found.requires_grad:
                found.register_hook(lambda _: pause())  # on the way back
        return found, state


class Policy(RecurrentActorCriticPolicy):
    def forward(self, obs: Any, lstm_states: Any, episode_starts: Any, deterministic: bool = False) -> Any:
        planted("policy")
        return super().forward(obs, lstm_states, episode_starts, deterministic)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with stamped("policy"):
            return super().__call__(*args, **kwargs)


class Buffer(RecurrentRolloutBuffer):
    def compute_returns_and_advantage(self, last_values: Any, dones: Any) -> None:
        with stamped("advantage"):
            for _ in range(self.buffer_size):  # once a step, as if inside its loop
                planted("advantage")
            super().compute_returns_and_advantage(last_values, dones)


def main() -> None:
    options = arguments(__doc__)
    torch.set_num_threads(1)
    model = RecurrentPPO(
        Policy,
        make_vec_env(Env, n_envs=options.envs, seed=options.seed, vec_env_cls=Envs),
        n_steps=options.steps,
        batch_size=options.steps * options.envs // 4,
        n_epochs=4,
        policy_kwargs={"optimizer_class": Adam, "lstm_hidden_size": 64},
        seed=options.seed,
        device="cpu",
    )
    for part, its_class in ((model.rollout_buffer, Buffer), (model.policy.lstm_actor, LSTM)):
        part.__class__ = its_class  # it takes no class of one's own
    model.policy.lstm_critic.__class__ = LSTM
    model.learn(options.iterations * options.steps * options.envs, callback=Turns())
    turn()
    tell()


if __name__ == "__main__":
    main()

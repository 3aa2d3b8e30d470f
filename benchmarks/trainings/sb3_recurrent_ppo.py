"""RecurrentPPO of sb3-contrib on CartPole, as its users write it."""

from __future__ import annotations

from typing import Any

from sb3_contrib import RecurrentPPO
from sb3_contrib.common.recurrent.buffers import RecurrentRolloutBuffer
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy
from sb3_parts import timed_buffer, train
from torch import nn
from turns import pause

LSTM_STEPS = 256
"""Calls between two pauses. An LSTM is called once per step of an environment, so an update is long."""


class LSTM(nn.LSTM):
    steps = 0

    def forward(self, input: Any, hx: Any = None) -> Any:
        found, state = super().forward(input, hx)
        LSTM.steps += 1
        if LSTM.steps % LSTM_STEPS == 0:
            pause()
            if found.requires_grad:
                found.register_hook(lambda _: pause())  # in the backward pass
        return found, state


def replace_classes(model: Any) -> None:
    """RecurrentPPO has no parameters for these classes."""
    model.rollout_buffer.__class__ = timed_buffer(RecurrentRolloutBuffer)
    model.policy.lstm_actor.__class__ = model.policy.lstm_critic.__class__ = LSTM


if __name__ == "__main__":
    train(__doc__, RecurrentPPO, RecurrentActorCriticPolicy, replace_classes, policy_kwargs={"lstm_hidden_size": 64})

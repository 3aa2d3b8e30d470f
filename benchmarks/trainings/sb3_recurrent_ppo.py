"""sb3-contrib's RecurrentPPO on CartPole, as its users write it."""

from __future__ import annotations

from typing import Any

from planted import arguments
from sb3_contrib import RecurrentPPO
from sb3_contrib.common.recurrent.buffers import RecurrentRolloutBuffer
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy
from sb3_parts import Acts, estimating, learn, make_model
from torch import nn
from turns import pause

LSTM_STEPS = 256
"""Steps between two pauses. There is a pass for each step of an environment, so an update is long."""


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


class Policy(Acts, RecurrentActorCriticPolicy):
    pass


if __name__ == "__main__":
    options = arguments(__doc__)
    model = make_model(RecurrentPPO, Policy, options, {"lstm_hidden_size": 64})
    model.rollout_buffer.__class__ = estimating(RecurrentRolloutBuffer)  # RecurrentPPO takes no buffer class
    for lstm in (model.policy.lstm_actor, model.policy.lstm_critic):
        lstm.__class__ = LSTM
    learn(model, options)

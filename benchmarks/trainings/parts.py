"""Parts of the trainings, with places where delays can be planted and where a training pauses for another one."""

from __future__ import annotations

from typing import Any

import torch
from gymnasium.envs.classic_control import CartPoleEnv
from planted import planted, stamped
from torch import nn
from turns import pause

ENV_STEPS, OPTIMIZER_STEPS = 256, 4
"""Steps between two pauses: 20 to 30 ms. After a pause the caches are cold, and the more code and data there is, the
more must be loaded again. A training without pauses does not pay for that."""


class Env(CartPoleEnv):
    steps = 0

    def step(self, action: Any) -> Any:
        Env.steps += 1
        if Env.steps % ENV_STEPS == 0:
            pause()
        planted("env")
        return super().step(action)


class Stamped(nn.Module):
    """A network whose calls in a rollout are timed."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if torch.is_grad_enabled():
            return super().__call__(*args, **kwargs)
        with stamped("policy"):
            return super().__call__(*args, **kwargs)


class Network(nn.Sequential):
    def forward(self, x: Any) -> Any:
        if not torch.is_grad_enabled():
            planted("policy")
        return super().forward(x)


class Adam(torch.optim.Adam):
    steps = 0

    def step(self, closure: Any = None) -> Any:
        Adam.steps += 1
        if Adam.steps % OPTIMIZER_STEPS == 0:
            pause()
        with stamped("optimizer"):
            planted("optimizer")
            return super().step(closure)

"""Short trainings with stable-baselines3 and sb3-contrib: real algorithms, real environments, few steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import generic_probes
import gymnasium
import numpy
import pytest
import sb3_contrib
import stable_baselines3
from stable_baselines3.common.env_util import make_vec_env

from rlprof import Profiler
from rlprof.probes.registry import Attached
from rlprof.probes.sb3_contrib import PROBE as CONTRIB
from rlprof.probes.stable_baselines3 import PROBE


class Corridor(gymnasium.Env):
    """Ten cells. At the left wall, only the mask shows that there is no way to the left."""

    observation_space = gymnasium.spaces.Box(0, 1, (1,), numpy.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def _seen(self) -> Any:
        return numpy.array([self.cell / 10], numpy.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.cell = int(self.np_random.integers(5))
        return self._seen(), {}

    def step(self, action: Any) -> Any:
        self.cell += 1 if action else -1
        return self._seen(), float(self.cell), self.cell >= 10, False, {}

    def action_masks(self) -> Any:
        return numpy.array([self.cell > 0, True])


def on_policy(kind: Any, policy: str = "MlpPolicy", env: Any = "CartPole-v1", **options: Any) -> Any:
    steps = {"n_steps": 16} if kind is stable_baselines3.A2C else {"n_steps": 32, "batch_size": 32, **options}
    return kind(policy, make_vec_env(env, 2, seed=3), seed=3, device="cpu", **steps)


def off_policy(kind: Any, env: str = "Pendulum-v1", **options: Any) -> Any:
    return kind("MlpPolicy", make_vec_env(env, 1, seed=3), seed=3, device="cpu", learning_starts=20, **options)


TRAININGS: dict[str, tuple[Callable[[], Any], int]] = {
    "PPO": (lambda: on_policy(stable_baselines3.PPO), 192),
    "A2C": (lambda: on_policy(stable_baselines3.A2C), 192),
    "RecurrentPPO": (lambda: on_policy(sb3_contrib.RecurrentPPO, "MlpLstmPolicy", n_epochs=2), 128),
    "MaskablePPO": (lambda: on_policy(sb3_contrib.MaskablePPO, env=Corridor), 192),
    "TRPO": (lambda: on_policy(sb3_contrib.TRPO), 128),
    "SAC": (lambda: off_policy(stable_baselines3.SAC), 60),
    "TD3": (lambda: off_policy(stable_baselines3.TD3), 60),
    "DDPG": (lambda: off_policy(stable_baselines3.DDPG), 60),
    "DQN": (lambda: off_policy(stable_baselines3.DQN, "CartPole-v1"), 200),
    "QRDQN": (lambda: off_policy(sb3_contrib.QRDQN, "CartPole-v1"), 100),
    "TQC": (lambda: off_policy(sb3_contrib.TQC), 60),
    "CrossQ": (lambda: off_policy(sb3_contrib.CrossQ), 26),
    "ARS": (lambda: sb3_contrib.ARS("LinearPolicy", make_vec_env("CartPole-v1", 1, seed=3), seed=3, device="cpu"), 600),
}

_SHORT = ("PPO", "DQN", "SAC", "MaskablePPO")

SOME_LONG = [pytest.param(name, marks=() if name in _SHORT else pytest.mark.long) for name in TRAININGS]
"""One of each kind; the others take minutes together."""


def trained(name: str) -> Any:
    make, steps = TRAININGS[name]
    return make().learn(steps)


@contextmanager
def attached(profiler: Profiler) -> Iterator[None]:
    """Times stable-baselines3 and sb3-contrib inside, and leaves them as they were."""
    probes = Attached(profiler)
    probes.attach([PROBE, CONTRIB])
    try:
        yield
    finally:
        probes.undo()


def recorded(core: str = "auto") -> AbstractContextManager[Profiler]:
    return generic_probes.recorded(PROBE, CONTRIB, core=core)

"""Trains with sb3-contrib's RecurrentPPO."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sb3_contrib import RecurrentPPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.utils import obs_as_tensor
from stable_baselines3.common.vec_env import DummyVecEnv

from rlprof import profile
from rlprof.errors import RlprofError
from rlprof.workloads.devices import prepare_torch
from rlprof.workloads.progress import Progress
from rlprof.workloads.ricochet.board import DIRECTIONS, make_levels
from rlprof.workloads.ricochet.environment import Ricochet
from rlprof.workloads.ricochet.network import Encoder
from rlprof.workloads.ricochet.policy import ConvLstmPolicy, LstmPolicy
from rlprof.workloads.ricochet.settings import RicochetSettings
from rlprof.workloads.workload import Parts, part


def train(settings: RicochetSettings, progress: Progress) -> None:
    model = make_model(settings)
    progress.begin(settings.total_iterations)
    with profile("training_total", track_memory=True):
        model.learn(
            settings.total_iterations * settings.steps_per_iteration,
            IterationScores(progress, settings.steps_per_iteration),
        )
    with profile("env_close"):
        model.env.close()  # type: ignore[union-attr]  # it was made with environments


class IterationScores(BaseCallback):
    """Counts the targets that were reached in each iteration.

    The mean return of the episodes that ended would at first be that of the short ones.
    """

    def __init__(self, progress: Progress, steps: int) -> None:
        super().__init__()
        self._progress = progress
        self._steps = steps
        self._reached = 0

    def _on_step(self) -> bool:
        self._reached += sum(self.locals["dones"]) - sum(info["TimeLimit.truncated"] for info in self.locals["infos"])
        return True

    def _on_rollout_start(self) -> None:
        if self.num_timesteps:
            self._advance()

    def _on_training_end(self) -> None:
        self._advance()

    def _advance(self) -> None:
        self._progress.advance(100 * self._reached / self._steps, self._steps)
        self._reached = 0


def make_model(settings: RicochetSettings) -> RecurrentPPO:
    steps = settings.steps_per_iteration
    if steps % settings.batch_size == 1:
        raise RlprofError(
            f"batch_size={settings.batch_size} leaves a last batch of one of the {steps} steps per iteration, whose "
            "advantage cannot be normalised; use another batch_size, n_steps or envs"
        )
    prepare_torch(settings)
    levels = make_levels(settings.board, np.random.default_rng(settings.seed))
    return RecurrentPPO(
        ConvLstmPolicy if settings.convlstm else LstmPolicy,
        DummyVecEnv([lambda: Monitor(Ricochet(settings, levels)) for _ in range(settings.envs)]),
        policy_kwargs=_policy_options(settings),
        n_steps=settings.n_steps,
        batch_size=settings.batch_size,
        n_epochs=settings.n_epochs,
        learning_rate=settings.learning_rate,
        gamma=settings.gamma,
        gae_lambda=settings.gae_lambda,
        clip_range=settings.clip_range,
        ent_coef=settings.ent_coef,
        seed=settings.seed,
        device=settings.device,
    )


def parts(settings: RicochetSettings) -> Parts:
    model = make_model(settings)
    model.learn(settings.steps_per_iteration)
    envs: Any = model.env
    policy: Any = model.policy
    seen: Any = model._last_obs
    actions = DIRECTIONS * settings.board.robots
    starts = torch.zeros(settings.envs, device=model.device)
    chance = np.random.default_rng(settings.seed)

    @torch.no_grad()
    def act() -> None:
        policy(obs_as_tensor(seen, model.device), model._last_lstm_states, starts)

    return {
        "environment": part(lambda: envs.step(chance.integers(actions, size=settings.envs)), settings.envs),
        "policy": part(act, settings.envs),
        "update": part(model.train, settings.steps_per_iteration),
    }


def _policy_options(settings: RicochetSettings) -> dict[str, Any]:
    network = settings.network
    seeing = {"network": network, "board_size": settings.board.size}
    heads = {"net_arch": {"pi": list(network.heads), "vf": list(network.heads)}, "activation_fn": torch.nn.ReLU}
    if settings.convlstm:
        return {**seeing, **heads}
    return {
        **heads,
        "features_extractor_class": Encoder,
        "features_extractor_kwargs": seeing,
        "lstm_hidden_size": network.features,
        "n_lstm_layers": network.layers,
    }

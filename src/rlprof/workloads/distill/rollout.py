"""Collecting: the student acts, and in supervised rollouts the teacher provides the right actions."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rlprof import get_profiler, profile, profile_function
from rlprof.workloads.distill.policy import State, Student, precision
from rlprof.workloads.distill.settings import DistillSettings
from rlprof.workloads.distill.teaching import Teaching
from rlprof.workloads.distill.tokens import TOKENS
from rlprof.workloads.distill.world import Worlds


@dataclass(frozen=True)
class Steps:
    """One step of all pupils [pupils, ...], or a rollout of them [steps, pupils, ...]."""

    observations: Tensor
    actions: Tensor
    log_probs: Tensor
    values: Tensor
    rewards: Tensor
    taught: Tensor
    """The teacher's actions, or the pupils' own if there is no teacher."""


NAMES = tuple(field.name for field in fields(Steps))


class Replay:
    """Keeps the steps of a rollout in a list until the rollout has ended. If preallocated, keeps them in tensors that
    are allocated once: the next rollout then overwrites what `whole` returned."""

    def __init__(self, length: int, preallocated: bool) -> None:
        self._length = length
        self._preallocated = preallocated
        self._steps: list[Steps] = []
        self._kept: Steps | None = None
        self._stored = 0

    @profile_function("replay_store")
    def store(self, step: Steps) -> None:
        if not self._preallocated:
            self._steps.append(step)
            return
        if self._kept is None:
            empty = {name: getattr(step, name).new_empty(self._length, *getattr(step, name).shape) for name in NAMES}
            self._kept = Steps(**empty)
        for name in NAMES:
            getattr(self._kept, name)[self._stored] = getattr(step, name)
        self._stored += 1

    @profile_function("replay_store")
    def whole(self) -> Steps:
        """Return the steps of the rollout, and begin the next."""
        self._stored = 0
        if self._kept is not None:
            return self._kept
        steps, self._steps = self._steps, []
        return Steps(**{name: torch.stack([getattr(step, name) for step in steps]) for name in NAMES})


@dataclass(frozen=True)
class Rollout:
    steps: Steps
    state: State
    """State of the recurrent layer before the first step."""
    after: Tensor
    after_state: State

    @property
    def mean_return(self) -> float:
        return self.steps.rewards.sum(dim=0).mean().item()


class Collector:
    """Keeps the worlds and the students' recurrent state from one rollout to the next."""

    def __init__(self, settings: DistillSettings, student: Student, device: torch.device) -> None:
        self.settings = settings
        self.student = student
        self.device = device
        self.worlds = Worlds(settings.base_missions, settings.envs, settings.agents, (settings.seed, 0))
        self.teaching = Teaching(settings, device)
        self.seen = self.worlds.observe()
        self.state = student.first_state(settings.pupils)
        self._replay = Replay(settings.bptt, settings.preallocated)
        self._rollouts = 0
        self._kept: dict[str, Tensor] | None = None
        if settings.preallocated:
            self._kept = {
                "observations": torch.empty(settings.pupils, TOKENS, 3, dtype=torch.uint8, device=device),
                "rewards": torch.empty(settings.pupils, device=device),
            }

    @profile_function("rollout")
    def collect(self, supervised: bool) -> Rollout:
        profiler = get_profiler()
        before = self.state
        for _ in range(self.settings.bptt):
            observations = self.to_device("observations", self.seen)
            actions, log_probs, values = self.act(observations)
            taught = self.teaching.actions(observations) if supervised else actions
            with profile("env_step"):
                rewards = self.worlds.step(actions.cpu().numpy().reshape(self.worlds.load.shape))
                self.seen = self.worlds.observe()
            rewarded = self.to_device("rewards", rewards)
            self._replay.store(Steps(observations, actions, log_probs, values, rewarded, taught))
            profiler.add_steps(self.settings.pupils)
        rollout = Rollout(self._replay.whole(), before, self.to_device("observations", self.seen), self.state)
        self._end_episodes()
        return rollout

    def act(self, observations: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The student's actions, their log probabilities, and its values."""
        with profile("policy_forward"), torch.no_grad(), precision(self.settings, self.device):
            log_probs, values, self.state = self.student(observations[None], self.state)
        with profile("action_sampling"):
            actions = torch.multinomial(log_probs[0].exp(), 1)
            return actions.squeeze(-1), log_probs[0].gather(-1, actions).squeeze(-1), values[0]

    @profile_function("host_to_device")
    def to_device(self, name: str, of_agents: NDArray[Any]) -> Tensor:
        """Reshape [envs, agents, ...] to [pupils, ...]."""
        tensor = torch.from_numpy(of_agents).flatten(0, 1)
        return tensor.to(self.device) if self._kept is None else self._kept[name].copy_(tensor)

    @profile_function("env_reset")
    def _end_episodes(self) -> None:
        """Reset some of the worlds after each rollout, so that every rollout has as many episode starts and ends."""
        self._rollouts += 1
        settings = self.settings
        ends = (np.arange(settings.envs) + self._rollouts) % settings.episode_segments == 0
        self.worlds.reset(np.flatnonzero(ends))
        self.seen = self.worlds.observe()
        remembers = torch.from_numpy(~ends.repeat(settings.agents)).to(self.device)[:, None]
        self.state = self.state[0] * remembers, self.state[1] * remembers
        get_profiler().add_episodes(int(ends.sum()))

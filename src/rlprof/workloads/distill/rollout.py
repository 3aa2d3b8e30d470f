"""Collecting: the student acts, and in supervised rollouts the teacher provides the right actions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rlprof import get_profiler, profile, profile_function
from rlprof.workloads.distill.batched import choose_all
from rlprof.workloads.distill.policy import State, Student, precision
from rlprof.workloads.distill.settings import DistillSettings
from rlprof.workloads.distill.teacher import choose
from rlprof.workloads.distill.tokens import TOKENS, Grid, Places
from rlprof.workloads.distill.world import Worlds


class Steps(NamedTuple):
    """One step of all pupils [pupils, ...], or a rollout of them [steps, pupils, ...]."""

    observations: Tensor
    actions: Tensor
    log_probs: Tensor
    values: Tensor
    rewards: Tensor
    taught: Tensor
    """The teacher's actions, or the pupils' own if there is no teacher."""


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
            self._kept = Steps(*(part.new_empty(self._length, *part.shape) for part in step))
        for kept, part in zip(self._kept, step):
            kept[self._stored] = part
        self._stored += 1

    @profile_function("replay_store")
    def whole(self) -> Steps:
        """Return the steps of the rollout, and begin the next."""
        self._stored = 0
        if self._kept is not None:
            return self._kept
        steps, self._steps = self._steps, []
        return Steps(*map(torch.stack, zip(*steps)))


@dataclass(frozen=True)
class Rollout:
    steps: Steps
    state: State
    """State of the recurrent layer before the first step."""
    after: Tensor
    after_state: State


class Teaching:
    """The teacher's actions for observations on the device. Both are copied, because the teacher runs on the host."""

    def __init__(self, settings: DistillSettings, device: torch.device) -> None:
        self.envs, self.agents = settings.envs, settings.agents
        self.device = device
        self._teach = teach_at_once if settings.batched_teacher else teach_one_by_one
        self._kept = None
        if settings.preallocated:
            pinned = device.type == "cuda"
            self._kept = (
                torch.empty(self.envs, self.agents, TOKENS, 3, dtype=torch.uint8, pin_memory=pinned),
                torch.empty(self.envs, self.agents, dtype=torch.int64, pin_memory=pinned),
                torch.empty(self.envs * self.agents, dtype=torch.int64, device=device),
            )

    @profile_function("teacher_total")
    def actions(self, observations: Tensor) -> Tensor:
        """Actions [pupils] for observations [pupils, TOKENS, 3]."""
        with profile("teacher_reshape"):
            by_env = observations.view(self.envs, self.agents, TOKENS, 3)
        with profile("device_to_host"):
            on_host = (by_env.cpu() if self._kept is None else self._kept[0].copy_(by_env)).numpy()
        answers = self._teach(on_host)
        with profile("stack_and_back"):
            if self._kept is None:
                return torch.from_numpy(np.concatenate(answers)).to(self.device).flatten()
            _, host, back = self._kept
            np.concatenate(answers, out=host.numpy())
            return back.copy_(host.flatten())


def teach_one_by_one(observations: Grid) -> list[Places]:
    """One call per environment, which handles one agent after the other."""
    answers = []
    for env in observations:
        with profile("agent_calls"):
            answers.append(np.array([[choose(observation) for observation in env]], np.int64))
    return answers


def teach_at_once(observations: Grid) -> list[Places]:
    with profile("agent_calls"):
        envs, agents = observations.shape[:2]
        return [choose_all(observations.reshape(envs * agents, TOKENS, 3)).reshape(envs, agents)]


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

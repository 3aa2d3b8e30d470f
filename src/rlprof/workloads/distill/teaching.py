"""The teacher's actions for observations on the device. Both are copied, because the teacher runs on the host."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from rlprof import profile, profile_function
from rlprof.workloads.distill.batched import choose_all
from rlprof.workloads.distill.settings import DistillSettings
from rlprof.workloads.distill.teacher import choose
from rlprof.workloads.distill.tokens import TOKENS, Grid, Places


class Teaching:
    def __init__(self, settings: DistillSettings, device: torch.device) -> None:
        self.envs, self.agents = settings.envs, settings.agents
        self.device = device
        self._ask = ask_at_once if settings.batched_teacher else ask_one_by_one
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
        answers = self._ask(on_host)
        with profile("stack_and_back"):
            if self._kept is None:
                return torch.from_numpy(np.concatenate(answers)).to(self.device).flatten()
            _, host, back = self._kept
            np.concatenate(answers, out=host.numpy())
            return back.copy_(host.flatten())


def ask_one_by_one(observations: Grid) -> list[Places]:
    """One call per environment, which handles one agent after the other."""
    answers = []
    for env in observations:
        with profile("agent_calls"):
            answers.append(np.array([[choose(observation) for observation in env]], np.int64))
    return answers


def ask_at_once(observations: Grid) -> list[Places]:
    with profile("agent_calls"):
        envs, agents = observations.shape[:2]
        return [choose_all(observations.reshape(envs * agents, TOKENS, 3)).reshape(envs, agents)]

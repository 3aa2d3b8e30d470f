"""Evaluates the student without random actions, in separate worlds. Uses none of the training's random numbers."""

from __future__ import annotations

import torch

from rlprof import profile, profile_function
from rlprof.workloads.distill.policy import Student, precision
from rlprof.workloads.distill.settings import DistillSettings
from rlprof.workloads.distill.world import Worlds


@profile_function("evaluation")
@torch.no_grad()
def evaluate(settings: DistillSettings, student: Student, device: torch.device) -> float:
    """Mean return of an agent over a rollout, always in the same worlds."""
    worlds = Worlds(settings.base_missions, settings.envs, settings.agents, (settings.seed, 1))
    state = student.first_state(settings.pupils)
    total = 0.0
    for _ in range(settings.bptt):
        observations = torch.from_numpy(worlds.observe()).flatten(0, 1).to(device)
        with profile("policy_predict"), precision(settings, device):
            log_probs, _, state = student(observations[None], state)
            actions = log_probs[0].argmax(-1).cpu().numpy()
        total += float(worlds.step(actions.reshape(settings.envs, settings.agents)).sum())
    return total / settings.pupils

"""The steps of a rollout, stored for learning."""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from rlprof import profile_function


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

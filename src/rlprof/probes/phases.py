"""Phases by rule, for trainings whose loop nobody knows: rollout, update, and what lies between them.

The first environment step after an optimizer step starts the next iteration. A rollout begins with it, or with the
forward pass before it that chooses its action. An update begins with the first backward pass, or the first forward pass
that learns. What lies between the last thing in the rollout and the update is `advantage`, or `batch_preparation` where
the update learns from more than was just collected: from a replay buffer.

Whether a forward pass acts or learns is told by the size of its batch, the gradient mode, and what followed when the
two were seen before. So one that is new may be misjudged once.
"""

from __future__ import annotations

import os
from typing import Any

from rlprof.ledger.profiler import Iteration, Profiler
from rlprof.probes.patches import Patches
from rlprof.probes.startup import end_startup

ON_POLICY_STEPS = 8
"""Of fewer steps than this no advantages are computed."""

NEVER = -2
"""No iteration's number."""

NONE, ROLLOUT, UPDATE = range(3)
"""What phase a loop is in, as the core numbers them."""


class Phases:
    """The rules, for one profiler. What it is in, and what it has seen, is the core's `Loop`: that is looked at with
    every call of an environment or a network, on the driver's thread, and asks here only where something changes."""

    def __init__(self, profiler: Profiler) -> None:
        profile = profiler.profile
        self._profiler = profiler
        self._ledger = profiler._ledger
        self._spans = {ROLLOUT: profile("rollout"), UPDATE: profile("update")}
        self._advantage = profile("advantage")
        self._preparation = profile("batch_preparation")
        self.loop = profiler._module.Loop(
            profiler._ledger, self, profile("policy_forward"), profile("loss_forward"), profile("env_forward")
        )
        self._open = NONE
        """The phase whose span is open."""
        self._recorded = True
        """Not any more where the program has spans of its own in that place: it knows its phases."""
        self._held = False
        """In a forked child, until something is learned there: it may only step environments for its parent."""
        self._marked = -1
        """The last iteration that was begun here; NEVER where the program marks its own."""

    # ---- what the loop asks ----

    def before_rollout(self) -> None:
        """An environment is about to be stepped or reset, for the first time since something was learned."""
        self._begin_rollout()
        if not self.loop.learned and self._marked >= 0:
            return
        self.loop.learned = False
        if self._marked != NEVER:
            index = self._ledger.iteration(False)
            self._marked = index if self._marked in (-1, index - 1) else NEVER
            self._profiler._tell("iteration")

    def is_acting(self, size: int, gradients: bool) -> bool:
        """Whether a forward pass chooses actions, and does not learn: of this leading dimension, in this gradient
        mode."""
        loop = self.loop
        if loop.has_acted(size, gradients):
            acts = loop.phase == ROLLOUT or loop.learned
        elif loop.phase == UPDATE:
            acts = False
        else:
            acts = loop.steps == 0 or (size == loop.envs and not loop.has_acted(size, not gradients))
        if not acts:
            self.begin_update(size)
        elif loop.phase != ROLLOUT:
            loop.forget_recent()  # what came before has not chosen an action
            self._begin_rollout()
        return bool(acts)

    def begin_update(self, size: int | None = None) -> None:
        """size: of the batch that is learned from, where a forward pass tells."""
        loop = self.loop
        if loop.phase != ROLLOUT:
            return
        loop.phase = UPDATE
        self._held = False
        if not self._may_record() or self._open != ROLLOUT:
            return
        fresh = loop.steps >= ON_POLICY_STEPS and (size is None or size <= loop.steps)
        # A negative answer: recording was switched off and on, and the span is not there.
        self._ledger.split(self._spans[ROLLOUT], self._advantage if fresh else self._preparation)
        self._begin(UPDATE)

    def epoch_ended(self) -> None:
        """As much was learned from as was collected."""
        self._profiler._tell("epoch")

    def size_of(self, argument: Any) -> Any:
        """The leading dimension of what has no shape itself; of a mapping or sequence, that of what comes first in
        it."""
        for _ in range(4):
            shape = getattr(argument, "shape", None)
            if shape is not None:
                return shape[0] if len(shape) else None
            if isinstance(argument, dict):
                argument = list(argument.values())
            argument = argument[0] if isinstance(argument, (tuple, list)) and argument else None
        return None

    def ended_in(self, result: Any) -> int:
        """How many episodes a step has ended, where it returned no arrays of truth values."""
        _, _, terminated, truncated, _ = result
        return sum(map(bool, (one or other for one, other in zip(terminated, truncated))))

    # ---- what the program and other probes say ----

    def iteration(self) -> Iteration:
        """What `Profiler.iteration` is replaced by: the program marks its own."""
        self._marked = NEVER
        return Profiler.iteration(self._profiler)

    def off(self) -> None:
        """Somebody knows better."""
        self.loop.on = False
        self._close()

    def after_fork(self) -> None:
        """What was open is the parent's."""
        self._open, self._marked, self._held = NONE, -1, True
        self.loop.phase = NONE
        self.loop.steps = 0
        self.loop.stepping = self.loop.learned = False

    # ---- what follows from it ----

    def _begin_rollout(self) -> None:
        loop = self.loop
        if not loop.on or not loop.training or loop.phase == ROLLOUT:
            return
        loop.phase = ROLLOUT
        loop.steps = 0
        end_startup(self._profiler)
        if self._may_record():
            self._close()
            self._begin(ROLLOUT)

    def _begin(self, phase: int) -> None:
        self._open = phase
        self._spans[phase].__enter__()

    def _may_record(self) -> bool:
        """Whether nothing is open but the phase. A phase that has something inside ends there, and is the last one."""
        if self._held:
            return False
        if not self._recorded or self._ledger.depth() == (self._open != NONE):
            return self._recorded
        self._recorded = self._open == NONE
        self._close()
        return False

    def _close(self) -> None:
        phase, self._open = self._open, NONE
        if phase != NONE:
            self._spans[phase].__exit__(None, None, None)


_phases: dict[Profiler, Phases] = {}


def phases_of(patches: Patches) -> Phases:
    """Those of a profiler, from the first probe that asks on until that is undone."""
    profiler = patches.profiler
    phases = _phases.get(profiler)
    if phases is None:
        phases = _phases[profiler] = Phases(profiler)
        patches.put(profiler, "iteration", phases.iteration)
        patches.at_undo(lambda: _forget(profiler))
    return phases


def _after_fork_in_child() -> None:
    for phases in _phases.values():
        phases.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def _forget(profiler: Profiler) -> None:
    phases = _phases.pop(profiler, None)
    if phases is not None:
        phases.off()


def off() -> None:
    """A framework's probe knows the loop: from here on the phases, the iterations and the counting are its own."""
    for phases in _phases.values():
        if phases.loop.on:
            phases.off()

"""Phases by rule, for trainings whose loop nobody knows: rollout, update, and what lies between them.

The first environment step after an optimizer step starts the next iteration. A rollout begins with it, or with the
forward pass before it that chooses its action. An update begins with the first backward pass, or the first forward pass
that learns. What lies between the last thing in the rollout and the update is `advantage`, or `batch_preparation` where
the update learns from more than was just collected: from a replay buffer.

Whether a forward pass acts or learns is told by the size of its batch, the gradient mode, and what followed when the
two were seen before. So one that is new may be misjudged once.
"""

from __future__ import annotations

from threading import get_ident
from typing import Any

from rlprof.ledger.profiler import Iteration, Profiler
from rlprof.probes.patches import Patches
from rlprof.probes.startup import end_startup

ON_POLICY_STEPS = 8
"""Of fewer steps than this no advantages are computed."""

NEVER = -2
"""No iteration's number."""

Kind = tuple[int, bool]
"""Of a forward pass: its leading dimension, and whether gradients are kept."""


class Phases:
    """Of one profiler, on its driver's thread."""

    def __init__(self, profiler: Profiler) -> None:
        self._profiler = profiler
        self._ledger = profiler._ledger
        self._rollout = profiler.profile("rollout")
        self._update = profiler.profile("update")
        self._advantage = profiler.profile("advantage")
        self._preparation = profiler.profile("batch_preparation")
        self._acts = profiler.profile("policy_forward")
        self._learns = profiler.profile("loss_forward")
        self._inside_env = profiler.profile("env_forward")
        self.on = True
        self.has_optimizer = False
        """Without one nothing is trained here: a process that only runs environments has no phases."""
        self._phase: Any = None
        """The span of the rollout or the update that the training is in."""
        self._open: Any = None
        """The same where that is recorded."""
        self._recorded = True
        """Not any more where the program has spans of its own in that place: it knows its phases."""
        self.stepping = False
        """The driver is inside an environment. Who called `before_env` with success says when it is not any more."""
        self._envs = 1
        """That the last step was for."""
        self._steps = 0
        """Of all environments, in this rollout."""
        self._learned = False
        """An optimizer has stepped since the last iteration began."""
        self._acting: set[Kind] = set()
        """Forward passes that were seen directly before a step."""
        self._recent: set[Kind] = set()
        """Forward passes since the last step or backward pass."""
        self._marked = -1
        """The last iteration that was begun here; NEVER where the program marks its own."""

    # ---- what the probes tell ----

    def before_env(self, envs: int) -> bool:
        """An environment is about to be stepped; or reset, with 0. Whether by the driver, and not inside another."""
        if self.stepping or get_ident() != self._profiler.driver:
            return False
        if self._phase is not self._rollout or self._learned:
            self._begin_rollout()
            self._begin_iteration()
        self.stepping = True
        if envs:
            self._envs = envs
            self._steps += envs
            if self._recent:
                self._acting |= self._recent
                self._recent.clear()
        return True

    def forward(self, size: int | None, gradients: bool) -> Any:
        """The span for a module's call: of the leading dimension of its input, if known, in this gradient mode."""
        if not self.on or get_ident() != self._profiler.driver:
            return self._learns if gradients else self._acts
        if self.stepping:
            return self._inside_env
        if self._phase is None:
            return self._learns if gradients else self._acts
        if size is None:
            return self._learns if self._phase is self._update else self._acts
        kind = size, gradients
        acts = self._phase is self._rollout if kind in self._acting else None  # the usual case first: it is frequent
        if not acts:
            acts = self._is_acting(kind)
            if not acts:
                self._begin_update(size)
            elif self._phase is not self._rollout:
                self._recent.clear()  # what came before has not chosen an action
                self._begin_rollout()
        self._recent.add(kind)
        return self._acts if acts else self._learns

    def before_backward(self) -> None:
        if not self.on or get_ident() != self._profiler.driver:
            return
        # What was taken for acting has learned; where acting and learning look the same, it stays acting.
        self._acting -= {kind for kind in self._recent if kind[0] != self._envs}
        self._recent.clear()
        self._begin_update(None)

    def before_optimizer(self) -> None:
        """It is about to step, or to clear the gradients."""
        if self._phase is self._rollout and self._steps and get_ident() == self._profiler.driver:
            self._begin_update(None)

    def after_optimizer(self) -> None:
        if get_ident() == self._profiler.driver:
            self._learned = True

    def iteration(self) -> Iteration:
        """What `Profiler.iteration` is replaced by: the program marks its own."""
        self._marked = NEVER
        return Profiler.iteration(self._profiler)

    def off(self) -> None:
        """Somebody knows better."""
        self.on = False
        self._close()

    # ---- what follows from it ----

    def _is_acting(self, kind: Kind) -> bool:
        if kind in self._acting:
            return self._phase is self._rollout or self._learned
        if self._phase is self._update:
            return False
        size, gradients = kind
        return self._steps == 0 or (size == self._envs and (size, not gradients) not in self._acting)

    def _begin_rollout(self) -> None:
        if not self.on or not self.has_optimizer or self._phase is self._rollout:
            return
        self._phase = self._rollout
        self._steps = 0
        end_startup(self._profiler)
        if self._may_record():
            self._close()
            self._open = self._rollout
            self._rollout.__enter__()

    def _begin_iteration(self) -> None:
        if not self.on or not self.has_optimizer or (not self._learned and self._marked >= 0):
            return
        self._learned = False
        if self._marked != NEVER:
            index = self._ledger.iteration(False)
            self._marked = index if self._marked in (-1, index - 1) else NEVER

    def _begin_update(self, size: int | None) -> None:
        """size: of the batch that is learned from, where a forward pass tells."""
        if self._phase is not self._rollout:
            return
        self._phase = self._update
        if not self._may_record() or self._open is not self._rollout:
            return
        fresh = self._steps >= ON_POLICY_STEPS and (size is None or size <= self._steps)
        # A negative answer: recording was switched off and on, and the span is not there.
        self._ledger.split(self._rollout, self._advantage if fresh else self._preparation)
        self._open = self._update
        self._update.__enter__()

    def _may_record(self) -> bool:
        """Whether nothing is open but the phase. A phase that has something inside ends there, and is the last one."""
        if not self._recorded or self._ledger.depth() == (self._open is not None):
            return self._recorded
        self._recorded = self._open is None
        self._close()
        return False

    def _close(self) -> None:
        span, self._open = self._open, None
        if span is not None:
            span.__exit__(None, None, None)


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


def _forget(profiler: Profiler) -> None:
    phases = _phases.pop(profiler, None)
    if phases is not None:
        phases.off()


def off() -> None:
    """A framework's probe knows the loop: from here on the phases, the iterations and the counting are its own."""
    for phases in _phases.values():
        if phases.on:
            phases.off()

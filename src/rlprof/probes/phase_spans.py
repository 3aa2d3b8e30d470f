"""Records the phases that the rules have found as spans of the driver."""

from __future__ import annotations

from rlprof.ledger.catalogue import AFTER_TRAINING
from rlprof.ledger.profiler import Profiler
from rlprof.probes.loop import EVALUATION, NONE, PREFILL, ROLLOUT, UPDATE

NAMES = {ROLLOUT: "rollout", UPDATE: "update", PREFILL: "prefill", EVALUATION: "evaluation"}


class PhaseSpans:
    """At most one phase is open. Once the program opens spans of its own around the phases, none is recorded any
    more: the program knows its phases better."""

    def __init__(self, profiler: Profiler) -> None:
        profile = profiler.profile
        self._ledger = profiler.ledger
        self._spans = {phase: profile(name) for phase, name in NAMES.items()}
        self._advantage = profile("advantage")
        self._preparation = profile("batch_preparation")
        self._after = profile(AFTER_TRAINING)
        self._enabled = True
        self.open = NONE
        self.held = False
        """Record nothing for now: see `PhaseRules.after_fork`."""

    def allowed(self) -> bool:
        """True if no span is open but the phase. A phase with an open span inside ends here, and is the last one."""
        if self.held:
            return False
        if not self._enabled or self._ledger.depth() == (self.open != NONE):
            return self._enabled
        self._enabled = self.open == NONE
        self.close()
        return False

    def begin(self, phase: int) -> None:
        """Close the open phase, and open this one."""
        self.close()
        self.open = phase
        self._spans[phase].__enter__()

    def close(self) -> None:
        phase, self.open = self.open, NONE
        if phase != NONE:
            self._spans[phase].__exit__(None, None, None)

    def end_at_last_call(self, computes_advantages: bool) -> None:
        """The open phase has ended with the last call inside it. The time since then prepared the update."""
        # No effect if recording was switched off and on: then the span is not open any more.
        self._ledger.split(self._spans[self.open], self._advantage if computes_advantages else self._preparation)
        self.open = NONE

    def end_training(self) -> None:
        """The training has ended with the last call in the open phase."""
        if self.open != NONE and self.allowed() and self._ledger.split(self._spans[self.open], self._after) >= 0:
            self.open = NONE

    def rename(self, phase: int, to: int) -> None:
        """Spans that were recorded as one phase were another."""
        self._ledger.rename(self._spans[phase], self._spans[to])

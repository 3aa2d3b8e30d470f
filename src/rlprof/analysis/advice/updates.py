"""What several rules look up about updates: their operations, their time, and the optimizer steps in them."""

from __future__ import annotations

from dataclasses import dataclass

from rlprof.analysis.advice.lookup import Outermost, fraction, number, outermost
from rlprof.analysis.facts import Facts
from rlprof.ledger.catalogue import PHASES


@dataclass(frozen=True, slots=True)
class Updates:
    """Everything that runs once per optimizer step."""

    found: Outermost
    """The phase `update` if there is one, else the operations that learn."""
    inside: tuple[str, ...]
    """The operations that learn, largest time first. No phase."""
    steps: float
    """Optimizer steps."""
    share: float
    """Share of the training time, 0 to 1."""

    @property
    def ns_per_step(self) -> float:
        return self.found.total_ns / self.steps if self.steps else 0.0


def updates_of(facts: Facts) -> Updates:
    rows = facts.breakdown.rows
    found = outermost(rows, lambda row: row.operation == "update")
    if not found.total_ns:
        found = outermost(rows, lambda row: row.category == "learning")
    learning = outermost(rows, lambda row: row.category == "learning" and row.operation not in PHASES)
    steps = facts.operation("optimizer_step")
    return Updates(
        found,
        learning.operations,
        number(steps.calls) if steps is not None else 0.0,
        fraction(found.total_ns, facts.breakdown.training_ns),
    )


def trains_with_sb3(facts: Facts) -> bool:
    """True if buffers of stable-baselines3 were seen."""
    return any(buffer.name.endswith(("RolloutBuffer", "ReplayBuffer")) for buffer in facts.evidence.buffers)

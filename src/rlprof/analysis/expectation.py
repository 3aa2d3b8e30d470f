"""How fast should this be? What the parts do alone, at their typical pace one after the other, against what it did."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from rlprof.analysis.breakdown import RLPROF, UNATTRIBUTED, Breakdown
from rlprof.analysis.operations import Operation
from rlprof.analysis.progress import Progress
from rlprof.ledger.catalogue import BESIDE_TRAINING

IDLE = "waiting with nobody at work"
SLOW_CALLS = "calls slower than the typical one"
ENOUGH_CALLS = 20
"""For a median to be the typical pace."""

POOR = 0.5
"""Below half of what the parts could do, something is set up wrongly."""


@dataclass(frozen=True, slots=True)
class Part:
    """A category of operations, if the training were nothing else."""

    category: str
    typical_ns: int
    steps_per_second: float | None


@dataclass(frozen=True, slots=True)
class Loss:
    """Wall time that no part needs."""

    what: str
    ns: int


@dataclass(frozen=True, slots=True)
class Expectation:
    ratio: float
    """Of the speed the parts allow, what was reached: 0 to 1."""
    steps_per_second: float | None
    """What the parts allow."""
    parts: tuple[Part, ...]
    losses: tuple[Loss, ...]
    """The largest first; with the parts they sum to the time since the training began."""

    @property
    def poor(self) -> bool:
        return self.ratio < POOR


def expectation(breakdown: Breakdown, operations: tuple[Operation, ...], progress: Progress) -> Expectation | None:
    """None where nothing was recorded."""
    if not breakdown.after_startup_ns or not operations:
        return None
    typical: defaultdict[str, int] = defaultdict(int)
    idle = slow = 0
    for operation in operations:
        if operation.operation in BESIDE_TRAINING:
            continue
        waited = min(operation.ledger_ns, operation.idle_ns)
        worked = operation.ledger_ns - waited
        pace = 1.0
        if operation.calls >= ENOUGH_CALLS and operation.p50_ns and operation.mean_ns:
            pace = min(1.0, operation.p50_ns / operation.mean_ns)
        needed = round(worked * pace)
        typical[operation.category] += needed
        idle += waited
        slow += worked - needed
    extra = {row.category: row.ledger_ns for row in breakdown.rows if row.category in (UNATTRIBUTED, RLPROF)}
    losses = [Loss(IDLE, idle), Loss(SLOW_CALLS, slow), *(Loss(name, ns) for name, ns in extra.items())]
    needed_ns = sum(typical.values())

    def rate(ns: int) -> float | None:
        return progress.steps / ns * 1e9 if progress.steps and ns else None

    parts = [Part(category, ns, rate(ns)) for category, ns in typical.items()]
    return Expectation(
        ratio=needed_ns / breakdown.after_startup_ns,
        steps_per_second=rate(needed_ns),
        parts=tuple(sorted(parts, key=lambda part: -part.typical_ns)),
        losses=tuple(sorted(losses, key=lambda loss: -loss.ns)),
    )

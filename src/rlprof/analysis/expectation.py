"""How fast should this training be? Its parts one after the other, compared with the speed it reached.

The speed of a part is that of its typical calls (`expectation`), or is measured in isolation (`isolated_expectation`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

from rlprof.analysis.breakdown import RLPROF, UNATTRIBUTED, Breakdown
from rlprof.analysis.operations import Operation
from rlprof.analysis.progress import Progress

IDLE = "waiting while no lane worked"
SLOW_CALLS = "calls slower than the typical call"
ENOUGH_CALLS = 20
"""With fewer calls, a median is not a typical pace."""

POOR = 0.5
"""Below half of the expected speed, something is probably set up wrongly."""


@dataclass(frozen=True, slots=True)
class Part:
    """A category of operations, as if the training consisted of nothing else."""

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
    """Reached speed as a fraction of the expected speed: 0 to 1."""
    steps_per_second: float | None
    """The expected speed."""
    parts: tuple[Part, ...]
    losses: tuple[Loss, ...]
    """Largest first. Parts and losses sum to the training time."""

    @property
    def poor(self) -> bool:
        return self.ratio < POOR


def expectation(breakdown: Breakdown, operations: tuple[Operation, ...], progress: Progress) -> Expectation | None:
    """None if nothing was recorded."""
    if not breakdown.training_ns or not operations:
        return None
    typical: defaultdict[str, int] = defaultdict(int)
    idle = slow = 0
    for operation in operations:
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
        ratio=needed_ns / breakdown.training_ns,
        steps_per_second=rate(needed_ns),
        parts=tuple(sorted(parts, key=lambda part: -part.typical_ns)),
        losses=tuple(sorted(losses, key=lambda loss: -loss.ns)),
    )


@dataclass(frozen=True, slots=True)
class IsolatedPart:
    name: str
    steps_per_second: float
    """Median over the rounds."""
    slowest: float
    fastest: float
    """Quartiles of the rounds."""
    share: float
    """Fraction of the time of all parts, 0 to 1."""


@dataclass(frozen=True, slots=True)
class IsolatedExpectation:
    parts: tuple[IsolatedPart, ...]
    """Slowest first."""
    expected: float
    """Steps per second with all parts one after the other."""
    reached: float

    @property
    def ratio(self) -> float:
        return self.reached / self.expected

    @property
    def poor(self) -> bool:
        return self.ratio < POOR


def isolated_expectation(measured: Mapping[str, Sequence[float]], reached: float) -> IsolatedExpectation:
    """`measured` has seconds per step for each part, one value per round; `reached` is in steps per second."""
    typical = {name: median(seconds) for name, seconds in measured.items()}
    whole = sum(typical.values())
    parts = []
    for name, seconds in sorted(typical.items(), key=lambda item: -item[1]):
        low, _, high = quantiles(measured[name], n=4, method="inclusive")
        parts.append(IsolatedPart(name, 1 / seconds, 1 / high, 1 / low, seconds / whole))
    return IsolatedExpectation(tuple(parts), 1 / whole, reached)

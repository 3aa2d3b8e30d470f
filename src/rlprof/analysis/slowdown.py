"""What does an operation really cost an iteration? From doses by which it was slowed down.

An operation that takes twice as long makes an iteration longer by what it costs; half as long makes it shorter by half
of that, unless something else is then the limit. So two doses are given: if they disagree about the cost there is a
kink, and what would happen on the other side is not told.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlprof.analysis.inference import ALPHA, Interval
from rlprof.analysis.jackknife import jackknife
from rlprof.analysis.lane_work import Work
from rlprof.analysis.topology import Saving, left

DOSES = (0.5, 1.0)
"""Of what the operation takes."""
LEAST_TO_CHOOSE = 10
KINK = 0.02
"""Of an iteration: by less, the doses do not disagree."""


@dataclass(frozen=True, slots=True)
class DosedBlock:
    """Times a step: without a dose, and with each of them."""

    base_ns: float
    dosed_ns: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Experiment:
    operation: str
    blocks: int
    cost: Interval | None
    """Of the operation, as a share of an iteration: 0.3 where without it an iteration would take 0.7 of the time."""
    longer: tuple[float, ...]
    """By which part each dose made an iteration longer."""
    kink: bool
    """The doses disagree."""
    held: float
    """Of its CPU time, with the GIL."""
    slept: float
    """Of its time, waiting."""
    why_not: str
    """It could not be slowed down."""

    @property
    def half_width(self) -> float | None:
        if self.cost is None or self.cost.low is None or self.cost.high is None:
            return None
        return (self.cost.high - self.cost.low) / 2


def experiment(
    operation: str, blocks: Sequence[DosedBlock], held: float = 0.0, slept: float = 0.0, why_not: str = ""
) -> Experiment:
    if why_not or not blocks:
        return Experiment(operation, 0, None, (), False, held, slept, why_not or "no dose was given")
    blocks = calm(blocks)
    weight = sum(dose * dose for dose in DOSES)

    def cost(some: Sequence[DosedBlock]) -> float:
        return sum(dose * more for dose, more in zip(DOSES, _longer(some))) / weight

    def bend(some: Sequence[DosedBlock]) -> float:
        one, other = (more / dose for dose, more in zip(DOSES, _longer(some)))
        return other - one

    bends = jackknife(blocks, bend, ALPHA)
    kink = bends.beyond_zero and abs(bends.estimate) > KINK
    return Experiment(operation, len(blocks), jackknife(blocks, cost, ALPHA), _longer(blocks), kink, held, slept, "")


def calm(blocks: Sequence[DosedBlock]) -> Sequence[DosedBlock]:
    """Without the fifth in which everything took longest: others had the machine then. A block has every dose, so that
    leaving it out favours none."""
    if len(blocks) < LEAST_TO_CHOOSE:
        return blocks
    return sorted(blocks, key=lambda block: 2 * block.base_ns + sum(block.dosed_ns))[: -(len(blocks) // 5)]


def _longer(blocks: Sequence[DosedBlock]) -> tuple[float, ...]:
    """By which part each dose made an iteration longer. Of means: where one block is noisy, its own ratio is worse."""
    base = sum(block.base_ns for block in blocks)
    return tuple(sum(times) / base - 1 for times in zip(*(block.dosed_ns for block in blocks)))


def extrapolate(experiments: Mapping[str, Experiment], saving: Saving, floor: float) -> Interval | None:
    """The gain in steps per second that follows, 0.4 for 40 % more; never more than where something else is the limit.

    floor: the part of an iteration's time that is left at least. None where it cannot be told.
    """
    costs = [experiments[name].cost for name in saving]
    if any(cost is None or experiments[name].kink for name, cost in zip(saving, costs)):
        return None
    saved = [(1 - part, cost) for part, cost in zip(saving.values(), costs) if cost is not None]
    estimate = sum(part * cost.estimate for part, cost in saved)
    if any(cost.low is None or cost.high is None for _, cost in saved):
        return Interval(_gain(estimate, floor), None, None)
    half = math.sqrt(sum((part * ((cost.high or 0.0) - (cost.low or 0.0)) / 2) ** 2 for part, cost in saved))
    return Interval(_gain(estimate, floor), _gain(estimate - half, floor), _gain(estimate + half, floor))


def floor_of(work: Work, saving: Saving) -> float:
    """The part of the time that is left whatever the others do: what one lane computes, or all on these cores."""
    if not work.cpu_known:
        return 0.0
    lanes: dict[str, float] = {}
    for piece in work.whole.pieces:
        lanes[piece.lane] = lanes.get(piece.lane, 0.0) + piece.cpu_ns * left(piece, saving)
    least = max(max(lanes.values(), default=0.0), sum(lanes.values()) / work.cores)
    return min(1.0, least / work.whole.wall_ns) if work.whole.wall_ns else 0.0


def _gain(saved: float, floor: float) -> float:
    return 1 / max(1 - saved, floor, 1e-3) - 1

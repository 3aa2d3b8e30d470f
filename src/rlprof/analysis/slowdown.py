"""What does an operation really cost per iteration? Computed from experiments that slowed it down.

An operation that takes twice as long makes an iteration longer by its cost. One that takes half as long makes it
shorter by half of its cost, unless something else becomes the limit. So two slowdowns are measured. If they
disagree about the cost there is a kink, and no gain is extrapolated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlprof.analysis.inference import ALPHA, Interval, jackknife
from rlprof.analysis.lane_work import Work
from rlprof.analysis.topology import Saving, left

SLOWDOWN_SIZES = (0.5, 1.0)
"""Fractions of the operation's own time."""
LEAST_TO_CHOOSE = 10
KINK = 0.02
"""Fraction of an iteration. Slowdowns that differ by less agree."""


@dataclass(frozen=True, slots=True)
class SlowdownBlock:
    """Times per step: without a slowdown, and with each slowdown."""

    base_ns: float
    slowed_ns: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Experiment:
    operation: str
    blocks: int
    cost: Interval | None
    """Fraction of an iteration: with 0.3, an iteration without the operation would take 0.7 of the time."""
    longer: tuple[float, ...]
    """Fraction by which each slowdown made an iteration longer."""
    kink: bool
    """True if the slowdowns disagree."""
    held: float
    """Fraction of its CPU time that it held the GIL."""
    slept: float
    """Fraction of its time that it waited."""
    why_not: str
    """Reason why the operation could not be slowed down; empty if it could."""

    @property
    def half_width(self) -> float | None:
        if self.cost is None or self.cost.low is None or self.cost.high is None:
            return None
        return (self.cost.high - self.cost.low) / 2


def experiment(
    operation: str, blocks: Sequence[SlowdownBlock], held: float = 0.0, slept: float = 0.0, why_not: str = ""
) -> Experiment:
    if why_not or not blocks:
        return Experiment(operation, 0, None, (), False, held, slept, why_not or "no slowdown was applied")
    blocks = calm(blocks)
    weight = sum(size * size for size in SLOWDOWN_SIZES)

    def cost(some: Sequence[SlowdownBlock]) -> float:
        return sum(size * more for size, more in zip(SLOWDOWN_SIZES, _longer(some))) / weight

    def bend(some: Sequence[SlowdownBlock]) -> float:
        one, other = (more / size for size, more in zip(SLOWDOWN_SIZES, _longer(some)))
        return other - one

    bends = jackknife(blocks, bend, ALPHA)
    kink = bends.beyond_zero and abs(bends.estimate) > KINK
    return Experiment(operation, len(blocks), jackknife(blocks, cost, ALPHA), _longer(blocks), kink, held, slept, "")


def calm(blocks: Sequence[SlowdownBlock]) -> Sequence[SlowdownBlock]:
    """Without the fifth of the blocks that took longest, when other programs used the machine. A block has every
    slowdown, so leaving one out favours none."""
    if len(blocks) < LEAST_TO_CHOOSE:
        return blocks
    return sorted(blocks, key=lambda block: 2 * block.base_ns + sum(block.slowed_ns))[: -(len(blocks) // 5)]


def _longer(blocks: Sequence[SlowdownBlock]) -> tuple[float, ...]:
    """Fraction by which each slowdown made an iteration longer, by sums: the ratio of one noisy block is worse."""
    base = sum(block.base_ns for block in blocks)
    return tuple(sum(times) / base - 1 for times in zip(*(block.slowed_ns for block in blocks)))


def extrapolate(experiments: Mapping[str, Experiment], saving: Saving, floor: float) -> Interval | None:
    """The expected gain in steps per second, 0.4 for 40 % more, limited by whatever becomes the next bottleneck.

    floor: the fraction of an iteration's time that remains in any case. Returns None if the gain is unknown.
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
    """Fraction of the time that remains in any case: the CPU time of one lane, or of all lanes on these cores."""
    if not work.cpu_known:
        return 0.0
    lanes: dict[str, float] = {}
    for piece in work.whole.pieces:
        lanes[piece.lane] = lanes.get(piece.lane, 0.0) + piece.cpu_ns * left(piece, saving)
    least = max(max(lanes.values(), default=0.0), sum(lanes.values()) / work.cores)
    return min(1.0, least / work.whole.wall_ns) if work.whole.wall_ns else 0.0


def _gain(saved: float, floor: float) -> float:
    return 1 / max(1 - saved, floor, 1e-3) - 1

"""Do two arms do the same work? If not, their times do not show which is faster.

An environment step is the unit of work, as far as the work per step is the same. Where iterations differ in size, this
must be visible in the optimizer steps: a training with more environments per iteration learns more per iteration too.
Otherwise one of the arms may count steps that are no training, such as those of an evaluation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from rlprof.analysis.figures import rate
from rlprof.errors import RlprofError

UPDATE = "optimizer_step"
STEP, ITERATION = "step", "iteration"
"""The units of a comparison."""
SAME_WORK = 0.01
"""Optimizer steps count as equal if they differ by less."""
SAME_SIZE = 0.02
"""Steps per iteration count as equal if they differ by less than this or by less than CHANCE."""
SAME_EPISODES = 0.2
"""Episodes per step count as equal if they differ by less than this or by less than CHANCE."""
CHANCE = 3.0
"""Standard deviations of a difference: episodes end by chance if the arms do not learn the same."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One arm in one pair: means over its iterations."""

    wall_ns: float
    """Per iteration."""
    cpu_ns: float
    steps: float
    ledger: Mapping[str, float]
    """ns per iteration by component, without the time between iterations: see `comparison.whole_ledger`."""
    episodes: float = 0.0
    updates: float = 0.0
    """Optimizer steps."""
    iterations: int = 1
    """Number of iterations that the means are taken over."""


def of_a_step(arm: Measured) -> Measured:
    """Convert figures per iteration to figures per step."""
    ledger = {name: ns / arm.steps for name, ns in arm.ledger.items()}
    return Measured(arm.wall_ns / arm.steps, arm.cpu_ns / arm.steps, 1.0, ledger)


def in_steps(of_a: Sequence[Measured], of_b: Sequence[Measured], per: str | None) -> bool:
    """True if figures are per step: as chosen, else if both arms count steps.

    Raises RlprofError for `step` if an arm counts none."""
    for name, side in (("A", of_a), ("B", of_b)):
        if per == STEP and not _counted(side):
            raise RlprofError(f"{name} counts no environment steps, so there is no --per step. Use --per iteration.")
    return per != ITERATION and _counted((*of_a, *of_b))


def work(of_a: Sequence[Measured], of_b: Sequence[Measured], per: str | None = None) -> str | None:
    """How the work per unit differs; None if it does not. Without a chosen unit, the size of iterations is work too,
    unless optimizer steps grow with it."""
    if not in_steps(of_a, of_b, per):
        updates = _differs("optimizer steps per iteration", of_a, of_b, lambda one: one.updates)
        return _joined(_steps(of_a, of_b), updates)
    what = "optimizer steps per 1,000 environment steps"
    updates = _differs(what, of_a, of_b, lambda one: 1000 * one.updates / one.steps)
    learning = any(one.updates for one in (*of_a, *of_b))
    unexplained = per is None and (updates is not None or not learning)
    return _joined(_steps(of_a, of_b) if unexplained else None, updates, _episodes(of_a, of_b))


def sizes(of_a: Sequence[Measured], of_b: Sequence[Measured]) -> str | None:
    """How the sizes of iterations differ. None if they do not, or if steps are not counted."""
    return _steps(of_a, of_b) if _counted((*of_a, *of_b)) else None


def _joined(*differences: str | None) -> str | None:
    return "; ".join(filter(None, differences)) or None


def _counted(arms: Sequence[Measured]) -> bool:
    return all(one.steps > 0 for one in arms)


def _steps(of_a: Sequence[Measured], of_b: Sequence[Measured]) -> str | None:
    """Iterations may end with an episode: then their sizes differ by chance, more or less in each pair or session."""
    a, b = ([one.steps for one in side] for side in (of_a, of_b))
    by_chance = CHANCE * math.hypot(*(stdev(side) / math.sqrt(len(side)) if len(side) > 1 else 0.0 for side in (a, b)))
    if abs(fmean(a) - fmean(b)) <= max(SAME_SIZE * max(fmean(a), fmean(b)), by_chance):
        return None
    return _written("steps per iteration", fmean(a), fmean(b))


def _differs(
    what: str, of_a: Sequence[Measured], of_b: Sequence[Measured], value: Callable[[Measured], float]
) -> str | None:
    a, b = fmean(map(value, of_a)), fmean(map(value, of_b))
    return _written(what, a, b) if max(a, b) > 0 and abs(a - b) / max(a, b) > SAME_WORK else None


def _written(what: str, a: float, b: float) -> str:
    return f"{rate(a)} {what} in A, {rate(b)} in B"


def _episodes(of_a: Sequence[Measured], of_b: Sequence[Measured]) -> str | None:
    """Every episode means a reset. Small counts vary by chance: 3 against 5 is not different work."""
    (a, a_error), (b, b_error) = map(_episode_rate, (of_a, of_b))
    if abs(a - b) <= max(SAME_EPISODES * max(a, b), CHANCE * math.hypot(a_error, b_error)):
        return None
    return _written("episodes per 1,000 environment steps", 1000 * a, 1000 * b)


def _episode_rate(side: Sequence[Measured]) -> tuple[float, float]:
    """Episodes per step, and the standard deviation if episodes end by chance."""
    episodes = sum(one.episodes * one.iterations for one in side)
    steps = sum(one.steps * one.iterations for one in side)
    return episodes / steps, math.sqrt(episodes) / steps

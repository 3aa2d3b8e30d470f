"""Compares two command lines: pairs of processes, until the interval is narrow enough or the time is up.

Stopping once a difference is significant would find a difference between equal programs in 23 % of cases. So the
comparison stops by the width of the interval, which does not depend on where the interval lies. Each interval has a
lower error rate than the 5 % that the whole comparison promises.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from rlprof.analysis.comparison import Comparison, MeasuredPair, compare
from rlprof.experiment.arm import PATIENCE_SECONDS
from rlprof.experiment.pairs import measured, run_pair
from rlprof.session.secrets import mask_line

ALPHA_PER_LOOK = 0.03
"""Error rate of each interval. Smaller than ALPHA, because the interval is computed after each pair, and several looks
at it are wrong more often than one."""
MOST = 5
"""Times the iterations of a plan that a pair may take."""
MOST_PAIRS = 100
"""On a noisy machine, fewer pairs cannot show a difference of a few percent."""
LEAST_PAIRS = 4
"""Pairs before the width is trusted: a t-interval of three values is too often narrow by chance."""


@dataclass(frozen=True, slots=True)
class Plan:
    a: str
    b: str
    """Command lines as you would type them after `rlprof`; for `compare_arms` also sessions."""
    pairs: int = MOST_PAIRS
    """Most pairs of processes."""
    blocks: int = 20
    """Fewest iterations of each arm in a pair. A pair goes on for as long as its start took, up to MOST times them."""
    seconds: float = 600.0
    """Time limit: no pair is started that would not finish by then."""
    width: float = 0.02
    """Half the width of the interval that is enough: 0.02 for plus or minus 2 %."""
    patience: float | None = None
    """Seconds for a start or an iteration of an arm (default: ten minutes, or `seconds` if that is less)."""
    per: str | None = None
    """Unit of the verdict: `step` or `iteration`. Without it, arms that do different work get no verdict."""


@dataclass(frozen=True, slots=True)
class State:
    pair: int
    block: int
    """Iteration of the pair; 0 while an arm starts and warms up."""
    so_far: Comparison | None
    seconds_left: float | None
    """Most seconds left; None until the first pair has ended."""


def compare_live(
    plan: Plan, component_of: Callable[[str], str], report: Callable[[State], None] = lambda _: None
) -> Comparison:
    """Run pairs until the plan is done. Ctrl-C ends with the result of the pairs so far, or of a part of the first."""
    so_far: Comparison | None = None
    try:
        for so_far in _after_each_pair(plan, component_of, report):  # noqa: B007 - the last one counts
            pass
    except KeyboardInterrupt:
        if so_far is None:
            raise
        return replace(so_far, interrupted=True)
    assert so_far is not None  # the first pair ends with a result or an error
    return so_far


def _after_each_pair(
    plan: Plan, component_of: Callable[[str], str], report: Callable[[State], None]
) -> Iterator[Comparison]:
    chance = random.Random()
    found: list[MeasuredPair] = []
    so_far: Comparison | None = None
    patience = plan.patience or min(PATIENCE_SECONDS, plan.seconds)
    began = time.monotonic()
    while so_far is None or not _enough(plan, so_far, time.monotonic() - began):
        state = State(len(found) + 1, 0, so_far, _left(plan, len(found), time.monotonic() - began))
        report(state)
        commands, on_progress = (plan.a, plan.b), partial(_report, report, state)
        pair = run_pair(
            commands, plan.blocks, chance, MOST * plan.blocks, patience, on_progress=on_progress, per=plan.per
        )
        if pair.interrupted and found:
            raise KeyboardInterrupt
        found.append(measured(pair, component_of, plan.per))
        so_far = replace(
            compare(mask_line(f"rlprof {plan.a}"), mask_line(f"rlprof {plan.b}"), found, ALPHA_PER_LOOK, plan.per),
            changes=pair.changes,
            interrupted=pair.interrupted,
        )
        yield so_far


def _enough(plan: Plan, so_far: Comparison, taken: float) -> bool:
    """True if the comparison is done. Another pair is expected to take the mean time of those before it."""
    return (
        so_far.interrupted
        or so_far.pairs >= plan.pairs
        or (so_far.withheld and so_far.pairs >= LEAST_PAIRS)
        or is_narrow(so_far, plan.width)
        or taken + taken / so_far.pairs > plan.seconds
    )


def _report(report: Callable[[State], None], state: State, block: int) -> None:
    report(replace(state, block=max(0, block)))


def _left(plan: Plan, done: int, taken: float) -> float | None:
    return min((plan.pairs - done) * taken / done, plan.seconds - taken) if done else None


def is_narrow(comparison: Comparison, width: float) -> bool:
    """True if there are enough pairs to trust the interval, and it is within plus or minus `width`."""
    low, high = comparison.speedup.low, comparison.speedup.high
    return comparison.pairs >= LEAST_PAIRS and low is not None and high is not None and (high - low) / 2 <= width

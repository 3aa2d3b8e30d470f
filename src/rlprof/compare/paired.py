"""Compares two command lines: pairs of processes, until the interval is narrow enough or the time is up.

Who stops when a difference is significant finds one where there is none in 23 % of cases. So it stops by the width of
the interval, which knows nothing of where the interval lies, and with a lower error rate than is promised.
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

ALPHA = 0.03
MOST = 5
MOST_PAIRS = 100
"""Where a machine is noisy, fewer say nothing of a few per cent."""
LEAST_PAIRS = 4
"""Before its width is believed: of three values, a t-interval is narrow by chance too often."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to compare, and how long."""

    a: str
    b: str
    """Command lines as one would type them after `rlprof`."""
    pairs: int = MOST_PAIRS
    """At most."""
    blocks: int = 20
    """Iterations of each arm in a pair, at least: short ones go on for as long as starting took, up to five times."""
    seconds: float = 600.0
    """At most: no pair is begun that would not be done by then."""
    width: float = 0.02
    """Half the interval: 0.02 for plus or minus 2 %."""
    patience: float | None = None
    """Seconds for an iteration or a start, after which an arm hangs; None: ten minutes, or all the time there is."""


@dataclass(frozen=True, slots=True)
class State:
    """How far it is."""

    pair: int
    block: int
    """0 while an arm starts and warms up."""
    so_far: Comparison | None
    seconds_left: float | None
    """At most; None before the first pair has ended."""


def compare_live(
    plan: Plan, component_of: Callable[[str], str], tell: Callable[[State], None] = lambda _: None
) -> Comparison:
    """Ctrl-C ends it with what was found so far: whole pairs, or what there is of the first."""
    so_far: Comparison | None = None
    try:
        for so_far in _after_each_pair(plan, component_of, tell):  # noqa: B007 - the last one counts
            pass
    except KeyboardInterrupt:
        if so_far is None:
            raise
        return replace(so_far, interrupted=True)
    assert so_far is not None  # there is a first pair, or an error
    return so_far


def _after_each_pair(
    plan: Plan, component_of: Callable[[str], str], tell: Callable[[State], None]
) -> Iterator[Comparison]:
    chance = random.Random()
    found: list[MeasuredPair] = []
    so_far: Comparison | None = None
    patience = plan.patience or min(PATIENCE_SECONDS, plan.seconds)
    began = time.monotonic()
    while so_far is None or not _enough(plan, so_far, time.monotonic() - began):
        state = State(len(found) + 1, 0, so_far, _left(plan, len(found), time.monotonic() - began))
        tell(state)
        pair = run_pair(
            (plan.a, plan.b),
            plan.blocks,
            chance,
            most=MOST * plan.blocks,
            patience=patience,
            on_progress=partial(_tell, tell, state),
        )
        if pair.interrupted and found:
            raise KeyboardInterrupt
        found.append(measured(pair, component_of))
        so_far = replace(
            compare(mask_line(f"rlprof {plan.a}"), mask_line(f"rlprof {plan.b}"), found, ALPHA),
            changes=pair.changes,
            interrupted=pair.interrupted,
        )
        yield so_far


def _enough(plan: Plan, so_far: Comparison, taken: float) -> bool:
    """Whether it is over: another pair would take as long as the mean of those before."""
    return (
        so_far.interrupted
        or so_far.pairs >= plan.pairs
        or is_narrow(so_far, plan.width)
        or taken + taken / so_far.pairs > plan.seconds
    )


def _tell(tell: Callable[[State], None], state: State, block: int) -> None:
    tell(replace(state, block=max(0, block)))


def _left(plan: Plan, done: int, taken: float) -> float | None:
    return min((plan.pairs - done) * taken / done, plan.seconds - taken) if done else None


def is_narrow(comparison: Comparison, width: float) -> bool:
    """Whether its interval may be believed, and is within plus or minus `width`."""
    low, high = comparison.speedup.low, comparison.speedup.high
    return comparison.pairs >= LEAST_PAIRS and low is not None and high is not None and (high - low) / 2 <= width

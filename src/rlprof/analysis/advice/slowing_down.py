"""Training becomes slower over time, because one operation takes longer and longer."""

from __future__ import annotations

from rlprof.analysis.advice.check import compare_with_change
from rlprof.analysis.advice.finding import Finding, Gain
from rlprof.analysis.advice.gain import Left, gain_if
from rlprof.analysis.advice.lines import place_of
from rlprof.analysis.advice.lookup import fraction, number, ratio
from rlprof.analysis.breakdown import UNATTRIBUTED
from rlprof.analysis.drift import Drift, Grown, drift
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, count, duration, rate
from rlprof.analysis.topology import own

LEAST_FALL = 0.15
"""Least loss of speed. On shared cores the speed of one training varies by more than a tenth from minute to minute."""

SURE = 3.0
"""Standard deviations from chance. By chance alone, one run in 700 would seem to slow down so steadily."""

LEAST_GROWTH = 0.10
"""Least growth of one operation, as a fraction of the whole time per unit: its trend may be clearer than the whole."""

SURE_OF_ONE = 3.5
"""Stricter for single operations, because there are several that could grow by chance."""

EXPLAINS = 0.5
"""Least fraction of the growth that an operation must explain to be named as the cause."""

MATTERS = 0.05
"""Least fraction of the whole time per unit."""
NEARLY_ALL = 0.7
ALIKE = 2.0
"""Times the growth of the whole, or as many times less."""

STANDS_OUT = 1.5
"""Times the growth of all others. If everything grows alike, the machine became slower, not an operation."""


def slowing_down(facts: Facts) -> Finding | None:
    found = drift(facts.series)
    cause = _cause(found) if found is not None else None
    return _finding(facts, found, cause) if found is not None and cause is not None else None


def growing_operation(facts: Facts) -> str | None:
    """The operation, or `unattributed`, that takes longer and longer and slows the training down."""
    found = drift(facts.series)
    cause = _cause(found) if found is not None else None
    return cause.operation if cause is not None else None


def is_alike(found: Drift) -> bool:
    """True if all operations that matter became slower by about the same factor."""
    matter = [grown for grown in found.grown if grown.before_ns >= MATTERS * found.before_ns]
    whole = ratio(found.after_ns - found.before_ns, found.before_ns)
    factors = [ratio(grown.after_ns - grown.before_ns, grown.before_ns) for grown in matter]
    most = sum(grown.before_ns for grown in matter) >= NEARLY_ALL * found.before_ns
    return most and len(factors) > 1 and all(whole / ALIKE <= factor <= whole * ALIKE for factor in factors)


def slower_as_a_whole(facts: Facts) -> Drift | None:
    """A training that became slower without a single operation as the cause."""
    found = drift(facts.series)
    if found is None or _cause(found) is not None:
        return None
    falls = found.z >= SURE and found.fall >= LEAST_FALL and found.steady_fall >= LEAST_FALL / 2
    return found if falls else None


def _cause(found: Drift) -> Grown | None:
    """The operation that makes the training slower, if it is a single one."""
    for grown in found.grown:
        growth = grown.after_ns - grown.before_ns
        others = ratio(found.after_ns - grown.after_ns, found.before_ns - grown.before_ns)
        stands_out = grown.explains >= EXPLAINS and grown.after_ns > STANDS_OUT * max(1.0, others) * grown.before_ns
        if stands_out and grown.z >= SURE_OF_ONE and growth >= LEAST_GROWTH * found.before_ns:
            return grown
    return None


def _finding(facts: Facts, found: Drift, cause: Grown) -> Finding:
    name = _name(cause)
    return Finding(
        rule="slowing_down",
        cause=f"Training slows down, and {name} explains {as_percent(min(1.0, cause.explains))} of it: "
        f"{duration(cause.before_ns)} per {found.unit} at the start, {duration(cause.after_ns)} at the end.",
        place=place_of(facts, cause.operation),
        operations=_named(found),
        evidence=(
            f"The growth of {name} is a trend {count(round(cause.z, 1))} standard deviations from chance.",
            *_figures(found),
        ),
        change=f"Find out what grows in {name} during the run: a list or buffer that is never cleared, longer "
        "episodes, a graph that keeps its history, a growing file.",
        gain=_gain(facts, cause.operation, cause.excess_ns),
        check=compare_with_change(facts),
    )


def _gain(facts: Facts, operation: str, excess_ns: float) -> Gain:
    """As if it had kept the pace of the first quarter; a change may also save what it took then."""
    time = sum(number(row.ledger_ns) for row in facts.breakdown.rows if row.operation == operation)
    kept = 1 - fraction(excess_ns, time)
    return gain_if(facts, {own(operation): Left(kept, 0.0, (1 + kept) / 2)})


def _figures(found: Drift) -> tuple[str, ...]:
    """Figures for the first and the last quarter, in which the operations add up to the whole."""
    speeds = [rate(ratio(1e9, ns)) for ns in (found.before_ns, found.after_ns)]
    return (
        f"The whole training: {duration(found.before_ns)} per {found.unit} in the first quarter and "
        f"{duration(found.after_ns)} in the last, {speeds[0]} and {speeds[1]} {found.unit}s per second.",
        *(
            f"{_name(grown)}: {duration(grown.before_ns)}, then {duration(grown.after_ns)}, "
            f"{as_percent(min(1.0, grown.explains))} of the growth."
            for grown in found.grown[:3]
        ),
    )


def _named(found: Drift) -> tuple[str, ...]:
    return tuple(grown.operation for grown in found.grown[:3] if grown.operation != UNATTRIBUTED)


def _name(grown: Grown) -> str:
    return "time outside of all spans" if grown.operation == UNATTRIBUTED else grown.operation

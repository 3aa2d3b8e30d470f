"""Training becomes slower as it goes on: as a whole, or one operation takes ever longer."""

from __future__ import annotations

from rlprof.analysis.advice.advice import Advice, speedup
from rlprof.analysis.advice.arithmetic import fraction, ratio
from rlprof.analysis.advice.lookup import AGAIN
from rlprof.analysis.breakdown import UNATTRIBUTED
from rlprof.analysis.drift import Drift, Grown, drift
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, count, duration, rate

LEAST_FALL = 0.15
"""Of the speed at the start. On shared cores the same training's speed differs by more than a tenth from minute to
minute."""

SURE = 3.0
"""Standard deviations. By chance alone, one run in 700 would seem to fall so steadily."""

LEAST_GROWTH = 0.10
"""Of the wall time a unit took at the start, for one operation: its trend shows where the whole is too noisy."""

SURE_OF_ONE = 3.5
"""As there are several operations that chance could choose from."""

EXPLAINS = 0.5
"""Of the growth: an operation that explains less is one of several."""

STANDS_OUT = 1.5
"""Times the growth of all others. Where everything grows alike, the machine became slower and no operation did."""


def slowing_down(facts: Facts) -> Advice | None:
    found = drift(facts.series)
    if found is None:
        return None
    cause = _cause(found)
    falls = found.z >= SURE and found.fall >= LEAST_FALL and found.steady_fall >= LEAST_FALL / 2
    if cause is None and not falls:
        return None
    return _of_one(facts, found, cause) if cause is not None else _of_all(facts, found)


def _cause(found: Drift) -> Grown | None:
    """The operation that makes the training slower, if it is one."""
    for grown in found.grown:
        growth = grown.after_ns - grown.before_ns
        others = ratio(found.after_ns - grown.after_ns, found.before_ns - grown.before_ns)
        stands_out = grown.explains >= EXPLAINS and grown.after_ns > STANDS_OUT * max(1.0, others) * grown.before_ns
        if stands_out and grown.z >= SURE_OF_ONE and growth >= LEAST_GROWTH * found.before_ns:
            return grown
    return None


def _of_one(facts: Facts, found: Drift, cause: Grown) -> Advice:
    name = _name(cause)
    return Advice(
        rule="slowing_down",
        title=f"Training slows down, and {name} explains {as_percent(min(1.0, cause.explains))} of it: "
        f"{duration(cause.before_ns)} a {found.unit} at first, {duration(cause.after_ns)} in the end.",
        operations=_named(found),
        evidence=(
            f"{name} grows on a trend {count(round(cause.z, 1))} standard deviations from chance.",
            *_figures(found),
        ),
        action=f"Look at what {name} handles more of as the run goes on: a list or buffer that is never cleared, "
        "longer episodes, a graph that keeps its history, files that grow.",
        gain=(1.0, speedup(fraction(cause.excess_ns, facts.breakdown.wall_ns), float("inf"))),
        check=f"{AGAIN}: {name} should take as long a {found.unit} at the end as at the start.",
    )


def _of_all(facts: Facts, found: Drift) -> Advice:
    return Advice(
        rule="slowing_down",
        title=f"Training slowed by {as_percent(found.fall)}, and no single operation explains it.",
        operations=_named(found),
        evidence=(
            f"The time a {found.unit} takes grows on a trend {count(round(found.z, 1))} standard deviations from "
            "chance.",
            *_figures(found),
        ),
        action="Look at the machine first (its temperature, other jobs, memory that is swapped), as several operations "
        "became slower; then at what they have in common.",
        gain=(1.0, speedup(fraction(found.excess_ns, facts.breakdown.wall_ns), float("inf"))),
        check=f"{AGAIN}: each operation should take as long a {found.unit} at the end as at the start.",
    )


def _figures(found: Drift) -> tuple[str, ...]:
    """Of the quarters, in which the operations add up to the whole."""
    speeds = [rate(ratio(1e9, ns)) for ns in (found.before_ns, found.after_ns)]
    return (
        f"All of it: {duration(found.before_ns)} a {found.unit} in the first quarter and {duration(found.after_ns)} in "
        f"the last, {speeds[0]} and {speeds[1]} {found.unit}s per second.",
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

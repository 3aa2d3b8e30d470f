"""Steps per second fall as the training goes on, and one operation's growing time explains it."""

from __future__ import annotations

from rlprof.analysis.advice.advice import Advice
from rlprof.analysis.advice.figures import count, duration, number, percent, ratio
from rlprof.analysis.advice.places import AGAIN
from rlprof.analysis.breakdown import UNATTRIBUTED
from rlprof.analysis.drift import Drift, drift
from rlprof.analysis.facts import Facts

LEAST_FALL = 0.15
"""Of the rate at the start. On shared cores the same training's speed differs by more than a tenth from minute to
minute."""

SURE = 3.0
"""Standard deviations. By chance alone, one run in 700 would seem to fall so steadily."""

EXPLAINS = 0.5
"""Of the growth: an operation that explains less is one of several."""

STANDS_OUT = 1.5
"""Times the growth of all others. Where everything grows alike, the machine became slower and no operation did."""


def slowing_down(facts: Facts) -> Advice | None:
    found = drift(facts.series)
    if found is None or found.fall < LEAST_FALL or found.z > -SURE or not found.grown:
        return None
    top = found.grown[0]
    others = ratio(found.after_ns - top.after_ns, found.before_ns - top.before_ns)
    stands_out = top.explains >= EXPLAINS and top.after_ns > STANDS_OUT * others * top.before_ns
    name = "time outside of all spans" if top.operation == UNATTRIBUTED else top.operation
    speed = f"{count(round(found.start_rate, 1))} to {count(round(found.end_rate, 1))} {found.unit}s per second"
    if stands_out:
        cause = f"{name} explains {percent(min(1.0, top.explains))} of it"
        action = f"Look at what {name} handles more of as the run goes on: a list or buffer that is never cleared, "
        action += "longer episodes, a graph that keeps its history, files that grow."
    else:
        cause = "no single operation explains it"
        action = "Look at the machine first (its temperature, other jobs, memory that is swapped), as several "
        action += "operations became slower; then at what they have in common."
    return Advice(
        rule="slowing_down",
        title=f"Training slowed from {speed}, and {cause}.",
        operations=tuple(grown.operation for grown in found.grown[:3] if grown.operation != UNATTRIBUTED),
        evidence=(
            f"The rate fell by {percent(found.fall)}, from {speed}, on a trend {count(round(-found.z, 1))} standard "
            "deviations from chance.",
            f"A {found.unit} took {duration(found.before_ns)} in the first quarter and {duration(found.after_ns)} in "
            "the last.",
            *(
                f"{grown.operation}: {duration(grown.before_ns)} a {found.unit}, then {duration(grown.after_ns)}, "
                f"which is {percent(min(1.0, grown.explains))} of the growth."
                for grown in found.grown[:3]
            ),
        ),
        action=action,
        gain=(1.0, _most(facts, found)),
        check=f"{AGAIN}: {name if stands_out else 'each operation'} should take as long a {found.unit} at the end as "
        "at the start.",
    )


def _most(facts: Facts, found: Drift) -> float:
    """If the whole run had gone as fast as its start."""
    units = facts.progress.steps if found.unit == "step" else facts.progress.iterations
    mean = ratio(number(units) * 1e9, facts.breakdown.wall_ns)
    return min(1000.0, max(1.0, ratio(found.start_rate, mean)))

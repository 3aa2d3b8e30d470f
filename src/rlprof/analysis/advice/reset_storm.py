"""Resets take a large part of the time: episodes are short, or a reset is expensive."""

from __future__ import annotations

from rlprof.analysis.advice.check import compare_with_change
from rlprof.analysis.advice.finding import Finding
from rlprof.analysis.advice.gain import Left, gain_if
from rlprof.analysis.advice.lines import place_of
from rlprof.analysis.advice.lookup import CONSIDERABLE, env_step_calls, fraction, number, outermost, ratio
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, count, duration, many

FEWEST_RESETS = 5

SHORT_EPISODE = 30
"""Steps per reset. With fewer, even a reset as long as three steps is a tenth of the collection time."""

EXPENSIVE = 5.0
"""Steps that a reset takes as long as. A cheaper one is no problem by itself."""

SHORT_EPISODES = (
    "Find out why episodes end so early (an untrained policy may fail at once). Let cheap failures continue as part of "
    "a longer episode, or reset in the background with a spare environment."
)
EXPENSIVE_RESETS = (
    "Make the reset cheaper: keep what does not change between episodes (assets, connections, levels), compute with "
    "whole arrays instead of loops, or prepare the next episode in another process while the current one runs."
)


def reset_storm(facts: Facts) -> Finding | None:
    resets, steps = facts.operation("env_reset"), facts.operation("env_step")
    if resets is None or resets.calls < FEWEST_RESETS:
        return None
    share = _recurring_share(facts)
    stepped = number(facts.progress.steps) or env_step_calls(facts)
    if share < CONSIDERABLE or not stepped:
        return None
    per_reset = ratio(stepped, resets.calls)
    cost_in_steps = ratio(resets.p50_ns, steps.p50_ns) if steps is not None else 0.0
    return Finding(
        rule="reset_storm",
        cause=f"Resets take {as_percent(share)} of the training time: one every {many(per_reset, 'step')}.",
        place=place_of(facts, "env_reset"),
        operations=("env_reset",),
        evidence=(
            f"{count(resets.calls)} resets for {count(stepped)} env steps, one every {count(round(per_reset, 1))}.",
            f"A typical reset takes {duration(number(resets.p50_ns))}"
            + (f", as long as {count(round(cost_in_steps, 1))} calls of env_step." if cost_in_steps else "."),
            "The share does not include the resets at the start.",
        ),
        change=_change(per_reset < SHORT_EPISODE, cost_in_steps >= EXPENSIVE),
        gain=gain_if(facts, {"env_reset": Left(0.1, 0.0, 0.5)}),
        check=compare_with_change(facts),
    )


def _change(short: bool, expensive: bool) -> str:
    if short and expensive:
        return f"{EXPENSIVE_RESETS} {SHORT_EPISODES}"
    return SHORT_EPISODES if short else EXPENSIVE_RESETS


def _recurring_share(facts: Facts) -> float:
    """Share of the training time after the first iteration. The first reset of an environment may be slow."""
    found = outermost(facts.breakdown.rows, lambda row: row.operation == "env_reset", ("system",))
    share = fraction(found.total_ns, facts.breakdown.training_ns)
    series, resets = facts.series, facts.operation("env_reset")
    later = series.ledger_ns.get("env_reset", ())[1:]
    if later:
        # The series has the resets without what they called, so it is scaled up.
        with_below = ratio(found.total_ns, resets.ledger_ns) if resets is not None else 0.0
        spent = sum(map(number, later)) * with_below
        return min(share, fraction(spent, sum(map(number, series.wall_ns[1:]))))
    if resets is None:
        return 0.0
    typical = number(resets.p50_ns) * max(0.0, number(resets.calls) - 1)
    return min(share, fraction(typical, facts.breakdown.training_ns))

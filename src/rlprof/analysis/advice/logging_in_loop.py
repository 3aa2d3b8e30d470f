"""Logging, checkpoints, evaluation or callbacks run often inside the loop, and the training waits for them."""

from __future__ import annotations

from rlprof.analysis.advice.advice import Advice, speedup
from rlprof.analysis.advice.lookup import AGAIN, CONSIDERABLE, env_step_calls, fraction, number, outermost, ratio
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, count, duration

FEWEST_CALLS = 5
"""Most trainings save and evaluate at the start and at the end. A few calls are normal."""

LEAST_SHARE = 0.02
"""Least share of the wall time for an operation to be named."""

ITERATIONS_APART = 10
"""An operation that runs less often is not part of the loop. How often it runs is not a question of speed."""

ACTIONS = {
    "evaluation": "evaluate every tenth time, with fewer episodes, or in another process from a checkpoint",
    "checkpoint": "save every tenth time, and write the file from another thread",
}
OTHERS = "collect the values and write them every few iterations from another thread; log nothing per env step"


def logging_in_loop(facts: Facts) -> Advice | None:
    found = outermost(facts.breakdown.rows, lambda row: row.category == "system")
    iterations, steps = number(facts.progress.iterations), env_step_calls(facts)
    wall = facts.breakdown.wall_ns
    named = [
        name
        for name in found.operations
        if found.calls[name] >= FEWEST_CALLS
        and fraction(found.ledger_ns[name], wall) >= LEAST_SHARE
        and (found.calls[name] * ITERATIONS_APART >= iterations if iterations else found.calls[name] * 2 >= steps > 0)
    ]
    share = fraction(sum(found.ledger_ns[name] for name in named), wall)
    if share < CONSIDERABLE:
        return None
    evidence = [
        f"{name} has {count(found.calls[name])} calls, {_how_often(found.calls[name], iterations, steps)}. Each takes "
        f"{duration(ratio(found.ledger_ns[name], found.calls[name]))} including what it calls. Together they take "
        f"{as_percent(fraction(found.ledger_ns[name], wall))} of the wall time."
        for name in named
    ]
    actions = list(dict.fromkeys(ACTIONS.get(name, OTHERS) for name in named))
    return Advice(
        rule="logging_in_loop",
        title=f"{', '.join(named)} take{'s' if len(named) == 1 else ''} {as_percent(share)} of the wall time inside "
        "the training loop.",
        operations=tuple(named),
        evidence=tuple(evidence),
        action=f"Run it less often: {'; '.join(actions)}.",
        gain=(1.0, speedup(share, float("inf"))),
        check=f"{AGAIN}: {named[0]} should have fewer calls per iteration and a smaller share.",
    )


def _how_often(calls: int, iterations: float, steps: int) -> str:
    if steps > 0 and calls * 2 >= steps:
        return f"{count(round(ratio(calls, steps), 1))} per call of env_step"
    if calls >= iterations:
        return f"{count(round(ratio(calls, iterations), 1))} per iteration"
    return f"one every {count(round(ratio(iterations, calls), 1))} iterations"

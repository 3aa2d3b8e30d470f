"""Results are fetched from the device at every step, and each fetch waits for all work queued before it."""

from __future__ import annotations

from rlprof.analysis.advice.advice import Advice, speedup
from rlprof.analysis.advice.lookup import (
    AGAIN,
    CONSIDERABLE,
    ENOUGH_CALLS,
    env_step_calls,
    names_of,
    number,
    ratio,
    share_of,
)
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, count, duration, many

FETCHING = ("device_to_host", "to_host", "device_synchronize")

ABOUT_ONCE = 0.5
"""Least fetches per step. Every second step is still part of the loop; once per rollout is far below."""


def per_step_sync(facts: Facts) -> Advice | None:
    fetching = [operation for operation in facts.operations if operation.operation in FETCHING]
    share = share_of(facts, fetching)
    calls = sum(number(operation.calls) for operation in fetching)
    # Where the vector is timed its calls are the steps of the loop; without it, the env steps that were counted.
    steps = env_step_calls(facts) or number(facts.progress.steps)
    each = ratio(calls, steps)
    if share < CONSIDERABLE or calls < ENOUGH_CALLS or each < ABOUT_ONCE:
        return None
    spent = sum(number(operation.ledger_ns) for operation in fetching)
    return Advice(
        rule="per_step_sync",
        title=f"Fetching from the device {many(each, 'time')} per step takes {as_percent(share)} of the wall time.",
        operations=names_of(fetching),
        evidence=(
            f"{', '.join(names_of(fetching))}: {count(calls)} calls for {count(steps)} steps of the loop.",
            f"Each call blocks the training for {duration(ratio(spent, calls))} on average. This includes the time in "
            "which the device finished its earlier work.",
        ),
        action="Fetch only the actions, once per step, and leave the rest on the device until the rollout ends. Avoid "
        "`.item()`, `.cpu()` and `.numpy()` for values, log-probabilities or logging.",
        gain=(1.0, speedup(share, float("inf"))),
        check=f"{AGAIN}: {names_of(fetching)[0]} should have fewer calls per step and a smaller share.",
    )

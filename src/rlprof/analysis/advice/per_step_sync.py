"""Results are fetched from the device at every step, and each fetch waits for all work queued before it."""

from __future__ import annotations

from rlprof.analysis.advice.check import compare_with_change
from rlprof.analysis.advice.finding import Finding
from rlprof.analysis.advice.gain import Left, gain_if
from rlprof.analysis.advice.lines import place_of
from rlprof.analysis.advice.lookup import (
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


def per_step_sync(facts: Facts) -> Finding | None:
    fetching = [operation for operation in facts.operations if operation.operation in FETCHING]
    share = share_of(facts, fetching)
    calls = sum(number(operation.calls) for operation in fetching)
    # Where the vector is timed its calls are the steps of the loop; without it, the env steps that were counted.
    steps = env_step_calls(facts) or number(facts.progress.steps)
    each = ratio(calls, steps)
    if share < CONSIDERABLE or calls < ENOUGH_CALLS or each < ABOUT_ONCE:
        return None
    spent = sum(number(operation.ledger_ns) for operation in fetching)
    return Finding(
        rule="per_step_sync",
        cause=f"Fetching from the device {many(each, 'time')} per step takes {as_percent(share)} of the training time.",
        place=place_of(facts, *names_of(fetching)),
        operations=names_of(fetching),
        evidence=(
            f"{', '.join(names_of(fetching))}: {count(calls)} calls for {count(steps)} steps of the loop.",
            f"Each call blocks the training for {duration(ratio(spent, calls))} on average. This includes the time in "
            "which the device finished its earlier work.",
        ),
        change="Fetch only the actions, once per step, and leave the rest on the device until the rollout ends. Avoid "
        "`.item()`, `.cpu()` and `.numpy()` for values, log-probabilities or logging.",
        gain=gain_if(facts, dict.fromkeys(names_of(fetching), Left(0.3, 0.05, 0.8))),
        check=compare_with_change(facts),
    )

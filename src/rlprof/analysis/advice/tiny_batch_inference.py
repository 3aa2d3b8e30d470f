"""The policy is asked for a few actions at a time, so that starting the calls costs more than the calculation."""

from __future__ import annotations

from rlprof.analysis.advice.advice import Advice, speedup
from rlprof.analysis.advice.arithmetic import fraction, number, ratio
from rlprof.analysis.advice.lookup import (
    AGAIN,
    CONSIDERABLE,
    ENOUGH_CALLS,
    acting_calls,
    names_of,
    policy_calls,
    share_of,
    unattributed,
)
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, count, duration, many
from rlprof.analysis.operations import Operation

SMALL_BATCH = 8
"""Env steps per call. An MLP of 2 x 64 took 54 us for 1 observation, 75 us for 8, 121 us for 64 (torch, one core)."""

GOOD_BATCH = 64
GOOD_BATCH_COST = 1.6
"""What a call of GOOD_BATCH cost there against one of SMALL_BATCH: the least that a larger batch adds."""

SHORT_NS = 500_000
"""A longer call is calculation, which larger batches do not make cheaper: a convolutional network that took 661 us for
1 observation took 26 ms for 64."""


OFTEN = 0.5
"""Of the policy's calls: what the loop does at least so often, it does once a pass."""


def tiny_batch_inference(facts: Facts) -> Advice | None:
    found = policy_calls(facts)
    calls, steps = acting_calls(facts), number(facts.progress.steps)
    policy = [operation for operation in facts.of_category("policy") if operation.operation in found.calls]
    share = share_of(facts, facts.of_category("policy"))
    if calls < ENOUGH_CALLS or not steps or not policy or share < CONSIDERABLE:
        return None
    batch = ratio(steps, calls)
    largest = max(policy, key=lambda operation: number(operation.ledger_ns))
    median = number(largest.p50_ns)
    # On a device a long call may still be nothing but launching: then the device knows of little work.
    launching = largest.device_calls > 0 and ratio(largest.device_ns, largest.busy_ns) < 0.5
    if batch > SMALL_BATCH or (median > SHORT_NS and not launching):
        return None
    factor = GOOD_BATCH / max(1.0, batch) / GOOD_BATCH_COST
    beside = _beside(facts, calls)
    spanless = unattributed(facts)
    beside_share = share_of(facts, beside)
    beside_share += fraction(spanless.ledger_ns, facts.breakdown.wall_ns) if spanless is not None else 0.0
    return Advice(
        rule="tiny_batch_inference",
        title=f"The policy is asked for actions for {many(batch, 'env step')} at a time, and that takes "
        f"{as_percent(share)} of the wall time.",
        operations=found.operations,
        evidence=(
            f"{largest.operation}: asked {many(calls, 'time')} for {count(steps)} env steps, {many(batch, 'step')} per "
            f"time.",
            f"Half of the calls took less than {duration(median)}, which is the cost of starting them rather than of "
            "calculating.",
            f"The policy takes {as_percent(share)} of the wall time; what else the loop does in each pass "
            f"({', '.join((*names_of(beside)[:3], 'unattributed'))}) takes {as_percent(beside_share)}, and may serve "
            "more steps at once too.",
        ),
        action=f"Step more environments at once and call the policy once for all of them, {GOOD_BATCH} or more a call; "
        "where one thread serves one environment, gather their observations first.",
        gain=(1.0, speedup(min(1.0, share + beside_share), factor)),
        check=f"{AGAIN}: the policy's calls per env step and its share should fall, steps per second rise.",
    )


def _beside(facts: Facts, calls: float) -> list[Operation]:
    """Short operations of each pass through the loop that are no environment's: bookkeeping, copies, buffers."""
    return [
        operation
        for operation in facts.operations
        if operation.category not in ("policy", "environment")
        and number(operation.calls) >= OFTEN * calls
        and ratio(operation.self_ns, operation.calls) <= SHORT_NS
    ]

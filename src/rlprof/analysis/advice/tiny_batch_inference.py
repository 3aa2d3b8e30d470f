"""The policy chooses only a few actions per call, so that starting a call costs more than computing it."""

from __future__ import annotations

from rlprof.analysis.advice.advice import Advice, speedup
from rlprof.analysis.advice.lookup import (
    AGAIN,
    CONSIDERABLE,
    ENOUGH_CALLS,
    acting_calls,
    fraction,
    names_of,
    number,
    policy_calls,
    ratio,
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
"""Cost of a call of GOOD_BATCH relative to SMALL_BATCH in that measurement."""

SHORT_NS = 500_000
"""A longer call computes, and larger batches do not help: a convolutional network took 661 us for 1, 26 ms for 64."""

OFTEN = 0.5
"""Fraction of the policy's calls. An operation with at least this many calls runs once per pass through the loop."""


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
    # On a device, a long call may still be mostly launching. The device then has little work.
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
        title=f"The policy chooses actions for only {many(batch, 'env step')} per call, and takes "
        f"{as_percent(share)} of the wall time.",
        operations=found.operations,
        evidence=(
            f"{largest.operation} chose actions {many(calls, 'time')} for {count(steps)} env steps.",
            f"Half of the calls took less than {duration(median)}, which is mostly the cost of starting a call.",
            f"Everything else that runs once per policy call ({', '.join((*names_of(beside)[:3], 'unattributed'))}) "
            f"takes {as_percent(beside_share)} of the wall time, and would also run less often.",
        ),
        action=f"Step {GOOD_BATCH} or more environments at once and call the policy once for all of them. If each "
        "environment has its own thread, gather their observations first.",
        gain=(1.0, speedup(min(1.0, share + beside_share), factor)),
        check=f"{AGAIN}: the policy should have fewer calls per env step, and steps per second should rise.",
    )


def _beside(facts: Facts, calls: float) -> list[Operation]:
    """Short operations of each pass through the loop besides the environments: bookkeeping, copies, buffers."""
    return [
        operation
        for operation in facts.operations
        if operation.category not in ("policy", "environment")
        and number(operation.calls) >= OFTEN * calls
        and ratio(operation.self_ns, operation.calls) <= SHORT_NS
    ]

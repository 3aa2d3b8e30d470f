"""The training waits while none of its lanes works."""

from __future__ import annotations

from rlprof.analysis.advice.advice import Advice, speedup
from rlprof.analysis.advice.lookup import AGAIN, fraction, number
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, count, duration

LARGE_SHARE = 0.20
"""Least fraction of the time since the training began."""

CHILDREN_AT_WORK = 20.0
"""Percent of one core. Above it, the training waits for child processes whose spans are not in this session."""

UNSEEN_AT_WORK = 0.05
"""Fraction of the idle time. If threads without spans used this much CPU time, the training may be waiting for them."""


def idle_waiting(facts: Facts) -> Advice | None:
    idle = {
        operation.operation: min(number(operation.ledger_ns), number(operation.idle_ns))
        for operation in facts.operations
        if operation.idle_ns > 0
    }
    training = number(facts.breakdown.after_startup_ns)
    share = fraction(sum(idle.values()), training)
    children = number(facts.resources.children_cpu_mean)
    if share < LARGE_SHARE or children >= CHILDREN_AT_WORK:
        return None
    if number(facts.resources.unseen_cpu_ns) >= UNSEEN_AT_WORK * sum(idle.values()):
        return None
    names = sorted((name for name in idle if idle[name]), key=lambda name: -idle[name])
    evidence = [
        f"{name} waited for {duration(idle[name])} while no lane worked, "
        f"{as_percent(fraction(idle[name], training))} of the training time."
        for name in names[:3]
    ]
    evidence.append(f"Child processes used {count(round(children))}% of one core.")
    return Advice(
        rule="idle_waiting",
        title=f"For {as_percent(share)} of its time the training waits while none of its lanes works.",
        operations=tuple(names),
        evidence=tuple(evidence),
        action="Use the waiting time: keep more environments or requests in flight than you wait for, or let the "
        "learner update on the previous batch while the next one is collected.",
        gain=(1.0, speedup(share, float("inf"))),
        check=f"{AGAIN}: {names[0]} should have a smaller share, and steps per second should rise.",
    )

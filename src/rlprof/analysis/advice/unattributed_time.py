"""A large part of the time is outside of all spans, so nothing is known about it."""

from __future__ import annotations

from rlprof.analysis.advice.advice import Advice
from rlprof.analysis.advice.lookup import fraction, number, unattributed
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, duration

LARGE_SHARE = 0.25
"""Least share of the wall time. The largest operation could be hidden in it."""

COMPUTING = 0.5


def unattributed_time(facts: Facts) -> Advice | None:
    row = unattributed(facts)
    share = fraction(row.ledger_ns, facts.breakdown.wall_ns) if row is not None else 0.0
    if row is None or share < LARGE_SHARE or not facts.operations:
        return None
    times = [duration(number(ns)) for ns in (row.ledger_ns, facts.breakdown.wall_ns)]
    evidence = [f"{times[0]} of {times[1]} were outside of all spans."]
    if row.cpu_ns is not None:
        computing = fraction(row.cpu_ns, row.ledger_ns)
        kind = "so it is mostly work" if computing >= COMPUTING else "so it is mostly waiting"
        evidence.append(f"The driver was on a CPU for {as_percent(computing)} of that time, {kind}.")
    return Advice(
        rule="unattributed_time",
        title=f"{as_percent(share)} of the wall time is outside of all spans.",
        operations=(),
        evidence=tuple(evidence),
        action='Put spans around the code between the known operations: `with profile("name"):`, or '
        "`@profile_function` on its functions.",
        gain=None,
        check="Run again and see in `rlprof report` whether `unattributed` has become small.",
    )

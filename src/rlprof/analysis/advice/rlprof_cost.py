"""rlprof itself takes a noticeable share of the time: spans around work that is too small."""

from __future__ import annotations

from rlprof.analysis.advice.advice import Advice
from rlprof.analysis.advice.lookup import fraction, number
from rlprof.analysis.breakdown import RLPROF
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, count, duration

SEEN = 0.05
"""Least share of the wall time. The cost is taken out of the accounts; its uncertainty, nearly half of it, is not."""


def rlprof_cost(facts: Facts) -> Advice | None:
    row = next((row for row in facts.breakdown.rows if row.category == RLPROF), None)
    share = fraction(row.ledger_ns, facts.breakdown.wall_ns) if row is not None else 0.0
    called = sorted((item for item in facts.operations if item.calls > 0), key=lambda item: -item.calls)
    if row is None or share < SEEN or not called:
        return None
    most = called[0]
    off = fraction(row.uncertainty_ns, facts.breakdown.wall_ns)
    return Advice(
        rule="rlprof_cost",
        title=f"rlprof's own cost is {as_percent(share)} of the wall time: {most.operation} is too small for a span.",
        operations=tuple(item.operation for item in called[:3]),
        evidence=(
            f"rlprof took {duration(number(row.ledger_ns))}. It is known to within {as_percent(off)} of the wall time.",
            f"{most.operation} was called {count(most.calls)} times, and half of the calls took less than "
            f"{duration(number(most.p50_ns))}.",
        ),
        action=f"Put one span around many calls of {most.operation} instead of one span around each.",
        gain=None,
        check="Run again and see in `rlprof report` whether rlprof's own row has become small.",
    )

"""The share of an operation, the same wherever the page shows it."""

from __future__ import annotations

from collections import defaultdict

from rlprof.analysis.breakdown import Row
from rlprof.analysis.report import Report


def own_shares(report: Report) -> dict[str, float]:
    """By operation, with `unattributed` and `rlprof`: percent of the wall time that it accounts for itself.

    Where an operation is one row of the call tree and nothing below it took time, that row has the figure already,
    rounded so that rows sum to 100. Rounded again from nanoseconds it might read 0.1 more or less.
    """
    *rows, unattributed, rlprof = report.facts.breakdown.rows
    places: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        places[row.operation].append(row)
    found = {row.operation: row.share for row in (unattributed, rlprof)}
    found |= {operation.operation: operation.share for operation in report.facts.operations}
    for name, (first, *others) in places.items():
        if not others and first.ledger_ns == first.subtree_ledger_ns:
            found[name] = first.share
    return found

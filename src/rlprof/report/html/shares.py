"""The share of an operation, the same everywhere on the page."""

from __future__ import annotations

from collections import defaultdict

from rlprof.analysis.breakdown import Row
from rlprof.analysis.report import Report


def own_shares(report: Report) -> dict[str, float]:
    """Own share of the training time in percent by operation, including `unattributed` and `rlprof`.

    The share of a row that stands for the whole operation is used as it is, rounded so that rows sum to 100.
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

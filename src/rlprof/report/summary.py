"""A few lines about a training that is still running."""

from __future__ import annotations

from rlprof.analysis.breakdown import breakdown
from rlprof.ledger.snapshot import Snapshot
from rlprof.report.format import count, duration, literal, percent, rate, shorten

MOST_ROWS = 6
_NAME = 28


def to_summary(snapshot: Snapshot) -> str:
    """Speed, and the accounts that matter; at most ten lines of 60 columns."""
    whole = breakdown(snapshot)
    speed = ""
    if snapshot.steps and snapshot.wall_ns:
        speed = f", {rate(snapshot.steps / snapshot.wall_ns * 1e9)} steps/s"
    lines = [f"rlprof: {snapshot.iterations:,} iterations in {duration(snapshot.wall_ns)}{speed}"]
    accounts = [(account.operation, account.ledger_ns, account.calls) for account in snapshot.accounts[:MOST_ROWS]]
    accounts += [(row.operation, row.ledger_ns, 0) for row in whole.rows[-2:]]
    for name, ns, calls in accounts:
        share = percent(100 * ns / snapshot.wall_ns) if snapshot.wall_ns else ""
        shown = shorten(literal(name), _NAME)
        lines.append(f"  {shown:<{_NAME}} {share:>6} {duration(ns):>8} {count(calls) if calls else '':>8}")
    return "\n".join(lines) + "\n"

"""A few lines about a training that is still running."""

from __future__ import annotations

from rlprof.analysis.figures import count, duration, many, percent, rate
from rlprof.ledger.catalogue import STARTUP
from rlprof.ledger.snapshot import Snapshot
from rlprof.render.names import literal, shorten

MOST_ROWS = 6
_NAME = 28


def to_summary(snapshot: Snapshot, before: Snapshot | None = None) -> str:
    """Speed, also since the previous snapshot, and the largest accounts. At most eleven lines of 70 columns."""
    speed = ""
    training = snapshot.wall_ns - snapshot.account(STARTUP).ledger_ns
    if snapshot.steps and training > 0:
        speed = f", {rate(snapshot.steps / training * 1e9)} steps/s"
        if before is not None and snapshot.wall_ns > before.wall_ns:
            lately = (snapshot.steps - before.steps) / (snapshot.wall_ns - before.wall_ns) * 1e9
            speed += f" ({rate(max(0.0, lately))} lately)"
    lines = [
        f"rlprof: {many(snapshot.iterations, 'iteration')} in {duration(snapshot.wall_ns)}{speed}",
        f"  {'since the start':<{_NAME}} {'share':>6} {'time':>8} {'calls':>8}",
    ]
    accounts = [(account.operation, account.ledger_ns, account.calls) for account in snapshot.accounts[:MOST_ROWS]]
    rest = snapshot.accounts[MOST_ROWS:]
    if rest:
        others = sum(account.ledger_ns for account in rest), sum(account.calls for account in rest)
        accounts.append((many(len(rest), "other operation"), *others))
    accounts += [("unattributed", snapshot.unattributed_ns, 0), ("rlprof", snapshot.rlprof_ns, 0)]
    for name, ns, calls in accounts:
        share = percent(100 * ns / snapshot.wall_ns) if snapshot.wall_ns else ""
        shown = shorten(literal(name), _NAME)
        lines.append(f"  {shown:<{_NAME}} {share:>6} {duration(ns):>8} {count(calls) if calls else '':>8}".rstrip())
    return "\n".join(lines) + "\n"

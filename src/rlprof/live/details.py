"""What a view shows of one iteration of the past, and of one operation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from rlprof.analysis.breakdown import RLPROF, UNATTRIBUTED
from rlprof.analysis.report import Report
from rlprof.analysis.window import Window
from rlprof.live.frame import OperationDetail, PastIteration
from rlprof.session.info import Info
from rlprof.session.reader import IterationRow


def unix_time(info: Info, time: int) -> int:
    """Unix time in ns of a time of the ledger's clock."""
    return info.started + time - info.origin


def past_of(row: IterationRow, seen: Window, info: Info, categories: Mapping[str, str]) -> PastIteration:
    times: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    for path, ns in (seen.own or {}).items():
        name = path[-1] if path else UNATTRIBUTED
        times[name] += ns
        calls[name] += (seen.calls or {}).get(path, 0) if path else 0
    seconds = row.wall_ns / 1e9
    kinds = {UNATTRIBUTED: UNATTRIBUTED, RLPROF: RLPROF, **categories}
    return PastIteration(
        first=row.first + 1,
        last=row.last + 1,
        ended=unix_time(info, row.end) / 1e9,
        wall_ns=row.wall_ns,
        steps=row.steps,
        steps_per_second=row.steps / seconds if row.steps > 0 and seconds > 0 else None,
        operations=tuple(
            (name, kinds.get(name, "other"), ns, calls[name]) for name, ns in times.most_common() if ns or calls[name]
        ),
    )


def operation_of(report: Report, name: str) -> OperationDetail | None:
    found = report.facts.operation(name)
    if found is None:
        return None
    return OperationDetail(
        operation=found.operation,
        category=found.category,
        calls=found.calls,
        share=found.share,
        mean_ns=found.mean_ns,
        p50_ns=found.p50_ns,
        p95_ns=found.p95_ns,
        p99_ns=found.p99_ns,
        min_ns=float(found.min_ns or 0),
        max_ns=float(found.max_ns or 0),
        histogram=found.histogram,
        lines=report.facts.code.within(name),
    )

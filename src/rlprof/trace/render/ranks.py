"""Several traces side by side: the ranks of one training."""

from __future__ import annotations

from rlprof.analysis.figures import as_percent
from rlprof.render.layout import Layout
from rlprof.trace.analysis.summary import Summary, TraceSummary
from rlprof.trace.render.tables import RANK_COLUMNS, label, pace


def ranks(summary: Summary, layout: Layout) -> TraceSummary:
    """Print a table of the traces, and return the slowest."""
    shown = sorted(summary.traces, key=lambda trace: (trace.rank is None, trace.rank or 0, trace.path))
    layout.heading(f"{len(shown)} traces")
    layout.table("rank", [label(trace) for trace in shown], shown, RANK_COLUMNS)
    fastest, slowest = min(shown, key=pace), max(shown, key=pace)
    if pace(fastest) and pace(slowest) > 1.02 * pace(fastest):
        layout.line(
            f"{label(slowest)} takes {as_percent(pace(slowest) / pace(fastest) - 1)} longer per step than "
            f"{label(fastest)}."
        )
    missing = _missing(shown)
    if missing:
        layout.line(f"Traces of {missing} are missing.", "yellow")
    return slowest


def _missing(traces: list[TraceSummary]) -> str:
    """Ranks of the training that have no trace here."""
    sizes = {trace.ranks for trace in traces if trace.ranks}
    if len(sizes) != 1:
        return ""
    given = {trace.rank for trace in traces}
    absent = [rank for rank in range(sizes.pop()) if rank not in given]
    if not absent:
        return ""
    few = ", ".join(map(str, absent[:8]))
    return f"rank {few}" if len(absent) == 1 else f"ranks {few}{f' and {len(absent) - 8} more' if absent[8:] else ''}"

"""Several traces side by side: the ranks of one training."""

from __future__ import annotations

from pathlib import Path

from rlprof.analysis.figures import as_percent, duration
from rlprof.render.layout import Column, Layout
from rlprof.trace.analysis.summary import Summary, TraceSummary


def ranks(summary: Summary, layout: Layout) -> TraceSummary:
    """Print a table of the traces, and return the slowest."""
    shown = sorted(summary.traces, key=lambda trace: (trace.rank is None, trace.rank or 0, trace.path))
    columns: list[Column[TraceSummary]] = [
        Column("steps", 5, lambda trace: str(len(trace.steps)) if trace.steps else ""),
        Column("per step", 8, lambda trace: duration(pace(trace))),
        Column("GPU busy", 8, lambda trace: _share(trace, "busy")),
        Column("GPU idle", 8, lambda trace: _share(trace, "idle")),
        Column("events", 9, lambda trace: f"{trace.events:,}", 1),
    ]
    layout.heading(f"{len(shown)} traces")
    layout.table("rank", [label(trace) for trace in shown], shown, columns)
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


def label(trace: TraceSummary) -> str:
    name = Path(trace.path).name
    return name if trace.rank is None else f"rank {trace.rank}: {name}"


def pace(trace: TraceSummary) -> float:
    """Nanoseconds per step, or of the whole trace if it has no steps."""
    return trace.window / max(1, len(trace.steps))


def _share(trace: TraceSummary, what: str) -> str:
    if not trace.devices or not trace.window:
        return "no GPU"
    return as_percent(sum(getattr(device, what) for device in trace.devices) / len(trace.devices) / trace.window)


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

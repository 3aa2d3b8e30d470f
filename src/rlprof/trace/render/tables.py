"""The tables of a summary, which the text and the HTML page share."""

from __future__ import annotations

from pathlib import Path

from rlprof.analysis.figures import as_percent, count, duration, size
from rlprof.render.layout import Column
from rlprof.trace.analysis.calls import Total
from rlprof.trace.analysis.copies import Copies
from rlprof.trace.analysis.memory import MemoryPeak
from rlprof.trace.analysis.phases import Phase
from rlprof.trace.analysis.summary import TraceSummary
from rlprof.trace.analysis.syncs import Sync

OPERATORS = "Operators, by their own time on the host"
KERNELS = "Kernels, by time"
SYNCS = "Where the host waits for the GPU"

WHY = {
    "host": "the host is busy and has launched nothing",
    "launching": "work was launched but has not started",
    "data": "the host waits for data",
    "sync": "the host waits for the device and has launched nothing more",
    "ending": "nothing more is launched before the end",
}
"""Why a device is idle."""

RANK_COLUMNS: tuple[Column[TraceSummary], ...] = (
    Column("steps", 5, lambda trace: str(len(trace.steps)) if trace.steps else ""),
    Column("per step", 8, lambda trace: duration(pace(trace))),
    Column("GPU busy", 8, lambda trace: _share(trace, "busy")),
    Column("GPU idle", 8, lambda trace: _share(trace, "idle")),
    Column("events", 9, lambda trace: f"{trace.events:,}", 1),
)
PHASE_COLUMNS: tuple[Column[Phase], ...] = (
    Column("time", 7, lambda phase: duration(phase.wall)),
    Column("CPU only", 8, lambda phase: _optional(phase.cpu)),
    Column("GPU only", 8, lambda phase: _optional(phase.gpu)),
    Column("both", 8, lambda phase: _optional(phase.overlapped)),
    Column("neither", 8, lambda phase: _optional(phase.idle)),
    Column("launched", 8, lambda phase: _optional(phase.launched), 1),
    Column("calls", 7, lambda phase: count(phase.calls) if phase.calls else "", 2),
)
KERNEL_COLUMNS: tuple[Column[Total], ...] = (
    Column("self", 7, lambda total: duration(total.total)),
    Column("calls", 7, lambda total: count(total.calls)),
    Column("avg", 7, lambda total: duration(total.total / total.calls)),
    Column("longest", 7, lambda total: duration(total.longest), 2),
)
_ON_GPU: Column[Total] = Column("on GPU", 8, lambda total: _optional(total.device), 1)
OPERATOR_COLUMNS = (*KERNEL_COLUMNS, _ON_GPU)
COPY_COLUMNS: tuple[Column[Copies], ...] = (
    Column("calls", 7, lambda copies: count(copies.calls)),
    Column("time", 7, lambda copies: duration(copies.total)),
    Column("bytes", 8, lambda copies: "" if copies.bytes is None else size(copies.bytes)),
    Column("rate", 10, lambda copies: "" if copies.rate is None else f"{size(copies.rate)}/s"),
    Column("<= 4 KB", 7, lambda copies: count(copies.small) if copies.small else "", 1),
)
SYNC_COLUMNS: tuple[Column[Sync], ...] = (
    Column("waited", 7, lambda sync: duration(sync.waited)),
    Column("calls", 7, lambda sync: count(sync.calls)),
    Column("avg", 7, lambda sync: duration(sync.waited / sync.calls), 1),
)
MEMORY_COLUMNS: tuple[Column[MemoryPeak], ...] = (
    Column("allocated", 9, lambda peak: size(peak.allocated)),
    Column("reserved", 9, lambda peak: "" if peak.reserved is None else size(peak.reserved)),
    Column("changes", 9, lambda peak: count(peak.changes)),
    Column("largest", 9, lambda peak: size(peak.largest)),
)


def peak_of(peak: MemoryPeak) -> str:
    return f"{peak.device} in {peak.phase}" if peak.phase else peak.device


def label(trace: TraceSummary) -> str:
    name = Path(trace.path).name
    return name if trace.rank is None else f"rank {trace.rank}: {name}"


def pace(trace: TraceSummary) -> float:
    """Nanoseconds per step, or of the whole trace if it has no steps."""
    return trace.window / max(1, len(trace.steps))


def direction(copies: Copies) -> str:
    return f"{copies.direction}: {copies.name}"


def caller(sync: Sync) -> str:
    """`cudaStreamSynchronize < aten::item < train.py(12): step < update`."""
    return " < ".join(filter(None, (sync.call, sync.operator, sync.function, sync.phase)))


def _share(trace: TraceSummary, what: str) -> str:
    if not trace.devices or not trace.window:
        return "no GPU"
    return as_percent(sum(getattr(device, what) for device in trace.devices) / len(trace.devices) / trace.window)


def _optional(ns: int) -> str:
    return duration(ns) if ns else ""

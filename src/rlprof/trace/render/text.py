"""A summary of traces as text: why the device is idle first, then what took the time."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from rich.console import Console

from rlprof.analysis.figures import as_percent, count, duration, many, size
from rlprof.render.advice import advice
from rlprof.render.layout import Column, Layout, plain
from rlprof.trace.analysis.calls import Total
from rlprof.trace.analysis.copies import Copies
from rlprof.trace.analysis.phases import Phase
from rlprof.trace.analysis.summary import DeviceTime, Summary, TraceSummary
from rlprof.trace.analysis.syncs import Sync
from rlprof.trace.render.ranks import ranks

MOST_ROWS = 15
MOST_PHASES = 25
MOST_STEPS = 12

WHY = {
    "host": "the host is busy and has launched nothing",
    "launching": "work was launched but has not started",
    "data": "the host waits for data",
    "sync": "the host waits for the device and has launched nothing more",
    "ending": "nothing more is launched",
}


def to_text(summary: Summary, width: int = 120) -> str:
    return plain(partial(render, summary), width)


def render(summary: Summary, console: Console) -> None:
    """One trace in full. For several: how they compare, and the slowest one in full."""
    layout = Layout(console)
    if len(summary.traces) > 1:
        slowest = ranks(summary, layout)
        layout.line("")
        layout.line(f"The slowest trace, {Path(slowest.path).name}:")
        _one(slowest, layout)
    else:
        _one(summary.traces[0], layout)


def _one(trace: TraceSummary, layout: Layout) -> None:
    _head(trace, layout)
    _devices(trace, layout)
    _phases(trace, layout)
    advice(trace.advice, layout)
    _operators(trace, layout)
    _kernels(trace, layout)
    _copies(trace, layout)
    _syncs(trace, layout)
    _memory(trace, layout)


def _head(trace: TraceSummary, layout: Layout) -> None:
    rank = "" if trace.rank is None else f", rank {trace.rank}{f' of {trace.ranks}' if trace.ranks else ''}"
    layout.line(f"{trace.path}: {many(trace.events, 'event')}, {size(trace.bytes)} of JSON{rank}", "dim")
    for problem in trace.problems:
        layout.line(f"Warning: {problem}.", "yellow")
    if not trace.window:
        layout.line("None of its events is an operator, an annotation or a kernel of torch.profiler.", "bold")
        return
    if trace.steps:
        times = [step.ns for step in trace.steps]
        spread = f" on average, {duration(min(times))} to {duration(max(times))}" if len(times) > 1 else ""
        layout.line(f"{many(len(times), 'step')} of {duration(sum(times) / len(times))}{spread}.", "bold")
    else:
        layout.line(f"{duration(trace.window)}, without marked steps.", "bold")
    if not trace.devices:
        layout.line("No GPU was used.", "bold")
    for device in trace.devices:
        name = f" ({device.name})" if device.name else ""
        reason = max(WHY, key=lambda why: getattr(device.why_idle, why))
        why = f"; idle mostly because {WHY[reason]}" if device.idle > 0.02 * trace.window else ""
        layout.line(f"GPU {device.number}{name}: busy {as_percent(device.busy / trace.window)}{why}.", "bold")
    if trace.profiler > 0.02 * trace.window:
        layout.line(f"The profiler itself took {as_percent(trace.profiler / trace.window)} of the time.")
    if len(trace.steps) > 1:
        shown = trace.steps[:MOST_STEPS]
        layout.line(
            "Steps: " + ", ".join(f"{step.name.partition('#')[2] or step.name} {duration(step.ns)}" for step in shown)
            + (f", and {len(trace.steps) - len(shown):,} more" if len(trace.steps) > len(shown) else "")
        )  # fmt: skip


def _devices(trace: TraceSummary, layout: Layout) -> None:
    if not trace.devices or not trace.window:
        return
    layout.heading("Why the GPU is idle")
    for device in trace.devices:
        _idle(device, trace.window, layout)


def _idle(device: DeviceTime, window: int, layout: Layout) -> None:
    parts: list[tuple[str, int]] = [
        (f"GPU {device.number} computes (kernels)", device.kernels),
        ("... and copies at the same time", max(0, device.kernels + device.copies - device.busy)),
        (f"GPU {device.number} only copies", max(0, device.busy - device.kernels)),
        *((f"idle: {text}", getattr(device.why_idle, why)) for why, text in WHY.items()),
    ]
    shown = [part for part in parts if part[1]]
    columns: list[Column[tuple[str, int]]] = [
        Column("of time", 7, lambda part: as_percent(part[1] / window)),
        Column("", 8, lambda part: duration(part[1])),
    ]
    layout.table(f"{many(device.launches, 'kernel')}", [name for name, _ in shown], shown, columns)
    where = [(name, ns) for name, ns in device.idle_in if ns >= 0.01 * window][:5]
    if where:
        layout.line("Idle while the host was in: " + ", ".join(f"{name} {duration(ns)}" for name, ns in where))


_PHASE_COLUMNS: tuple[Column[Phase], ...] = (
    Column("time", 7, lambda phase: duration(phase.wall)),
    Column("CPU only", 8, lambda phase: duration(phase.cpu) if phase.cpu else ""),
    Column("GPU only", 8, lambda phase: duration(phase.gpu) if phase.gpu else ""),
    Column("both", 8, lambda phase: duration(phase.overlapped) if phase.overlapped else ""),
    Column("neither", 8, lambda phase: duration(phase.idle) if phase.idle else ""),
    Column("launched", 8, lambda phase: duration(phase.launched) if phase.launched else "", 1),
    Column("calls", 7, lambda phase: count(phase.calls) if phase.calls else "", 2),
)


def _phases(trace: TraceSummary, layout: Layout) -> None:
    if not trace.phases or not trace.window:
        return
    layout.heading("Phases")
    shown = trace.phases[:MOST_PHASES]
    share: Column[Phase] = Column("of time", 7, lambda phase: as_percent(phase.wall / trace.window))
    layout.table("annotation", [phase.name for phase in shown], shown, (share, *_PHASE_COLUMNS))
    if hidden := len(trace.phases) - len(shown):
        layout.line(f"{hidden:,} more with less time are in --format json.")
    if trace.devices:
        layout.line(
            "Time is while the phase was the innermost annotation; CPU only, GPU only, both and neither add up to it. "
            "Launched is what ran on the device for the phase, at any time."
        )


_TOTAL_COLUMNS: tuple[Column[Total], ...] = (
    Column("self", 7, lambda total: duration(total.total)),
    Column("calls", 7, lambda total: count(total.calls)),
    Column("avg", 7, lambda total: duration(total.total / total.calls)),
    Column("longest", 7, lambda total: duration(total.longest), 2),
)


def _operators(trace: TraceSummary, layout: Layout) -> None:
    if not trace.operators:
        return
    layout.heading("Operators, by their own time on the host")
    shown = trace.operators[:MOST_ROWS]
    on_device: Column[Total] = Column("on GPU", 8, lambda total: duration(total.device) if total.device else "", 1)
    layout.table("operator", [_shaped(total) for total in shown], shown, (*_TOTAL_COLUMNS, on_device))
    _more(len(trace.operators) - len(shown), layout)


def _kernels(trace: TraceSummary, layout: Layout) -> None:
    if not trace.kernels:
        return
    layout.heading("Kernels, by time")
    shown = trace.kernels[:MOST_ROWS]
    layout.table("kernel", [_shaped(total) for total in shown], shown, _TOTAL_COLUMNS)
    _more(len(trace.kernels) - len(shown), layout)
    bound = trace.launch_bound
    if bound is not None:
        layout.line(
            f"Launch-bound: {bound.bound:,} of {bound.kernels:,} kernels found their device idle and took less time "
            f"than the call that launched them (medians {duration(bound.kernel)} and {duration(bound.launch)})."
        )


def _shaped(total: Total) -> str:
    return f"{total.name} [{total.shapes}]" if total.shapes else total.name


def _more(hidden: int, layout: Layout) -> None:
    if hidden > 0:
        layout.line(f"{hidden:,} more with less time are in --format json.")


def _copies(trace: TraceSummary, layout: Layout) -> None:
    if not trace.copies:
        return
    layout.heading("Copies")
    columns: list[Column[Copies]] = [
        Column("calls", 7, lambda copies: count(copies.calls)),
        Column("time", 7, lambda copies: duration(copies.total)),
        Column("bytes", 8, lambda copies: "" if copies.bytes is None else size(copies.bytes)),
        Column("rate", 10, lambda copies: "" if copies.rate is None else f"{size(copies.rate)}/s"),
        Column("<= 4 KB", 7, lambda copies: count(copies.small) if copies.small else "", 1),
    ]
    names = [f"{copies.direction}: {copies.name}" for copies in trace.copies]
    layout.table("direction", names, trace.copies, columns)


def _syncs(trace: TraceSummary, layout: Layout) -> None:
    if not trace.syncs:
        return
    layout.heading("Where the host waits for the GPU")
    shown = trace.syncs[:MOST_ROWS]
    columns: list[Column[Sync]] = [
        Column("waited", 7, lambda sync: duration(sync.waited)),
        Column("calls", 7, lambda sync: count(sync.calls)),
        Column("avg", 7, lambda sync: duration(sync.waited / sync.calls), 1),
    ]
    layout.table("call", [caller(sync) for sync in shown], shown, columns)
    _more(len(trace.syncs) - len(shown), layout)


def caller(sync: Sync) -> str:
    """`cudaStreamSynchronize < aten::item < train.py(12): step < update`."""
    return " < ".join(filter(None, (sync.call, sync.operator, sync.function, sync.phase)))


def _memory(trace: TraceSummary, layout: Layout) -> None:
    if not trace.memory:
        return
    layout.heading("Memory peaks")
    for peak in trace.memory:
        where = f" in {peak.phase}" if peak.phase else ""
        reserved = "" if peak.reserved is None else f", {size(peak.reserved)} reserved"
        layout.line(
            f"{peak.device}: {size(peak.allocated)} allocated{where}{reserved}; "
            f"{peak.changes:,} allocations and releases, the largest {size(peak.largest)}"
        )

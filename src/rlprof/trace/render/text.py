"""A summary of traces as text: why the device is idle first, then what took the time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from rich.console import Console

from rlprof.analysis.figures import as_percent, duration, many, size
from rlprof.render.advice import advice
from rlprof.render.layout import Column, Layout, plain
from rlprof.trace.analysis.calls import Total
from rlprof.trace.analysis.phases import Phase
from rlprof.trace.analysis.summary import DeviceTime, Summary, TraceSummary
from rlprof.trace.render import tables
from rlprof.trace.render.ranks import ranks

MOST_ROWS = 15
MOST_PHASES = 25
MOST_STEPS = 12

Item = TypeVar("Item")


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
    _totals(trace, layout)
    _table("Copies", "direction", tables.direction, trace.copies, tables.COPY_COLUMNS, layout)
    _table(tables.SYNCS, "call", tables.caller, trace.syncs, tables.SYNC_COLUMNS, layout)
    _table("Memory peaks", "device", tables.peak_of, trace.memory, tables.MEMORY_COLUMNS, layout)


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
        reason = max(tables.WHY, key=lambda why: getattr(device.why_idle, why))
        why = f"; idle mostly because {tables.WHY[reason]}" if device.idle > 0.02 * trace.window else ""
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
        *((f"idle: {text}", getattr(device.why_idle, why)) for why, text in tables.WHY.items()),
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


def _phases(trace: TraceSummary, layout: Layout) -> None:
    if not trace.window:
        return
    share: Column[Phase] = Column("of time", 7, lambda phase: as_percent(phase.wall / trace.window))
    columns = (share, *tables.PHASE_COLUMNS)
    _table("Phases", "annotation", lambda phase: phase.name, trace.phases, columns, layout, MOST_PHASES)
    if trace.phases and trace.devices:
        layout.line(
            "Time is while the phase was the innermost annotation. CPU only, GPU only, both and neither add up to it. "
            "Launched is the time of everything that the phase launched on the device, whenever that ran."
        )


def _totals(trace: TraceSummary, layout: Layout) -> None:
    _table(tables.OPERATORS, "operator", _shaped, trace.operators, tables.OPERATOR_COLUMNS, layout)
    _table(tables.KERNELS, "kernel", _shaped, trace.kernels, tables.KERNEL_COLUMNS, layout)
    bound = trace.launch_bound
    if bound is not None:
        layout.line(
            f"Launch-bound: {bound.bound:,} of {bound.kernels:,} kernels found their device idle and took less time "
            f"than their launch. The median kernel takes {duration(bound.kernel)}, the median launch "
            f"{duration(bound.launch)}."
        )


def _shaped(total: Total) -> str:
    return f"{total.name} [{total.shapes}]" if total.shapes else total.name


def _table(
    title: str,
    what: str,
    name_of: Callable[[Item], str],
    rows: Sequence[Item],
    columns: Sequence[Column[Item]],
    layout: Layout,
    most: int = MOST_ROWS,
) -> None:
    if not rows:
        return
    layout.heading(title)
    layout.table(what, [name_of(row) for row in rows[:most]], rows[:most], columns)
    if len(rows) > most:
        layout.line(f"{len(rows) - most:,} more with less time are in --format json.")

"""A summary of traces as one self-contained HTML page without scripts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from rlprof.analysis.figures import as_percent, duration, many, size
from rlprof.render.html.advice import advice_card
from rlprof.render.html.markup import Markup, colour, element, figures, join, plain_name, prose, swatch, table
from rlprof.render.html.plain import page
from rlprof.render.layout import Column
from rlprof.trace.analysis.calls import Total
from rlprof.trace.analysis.phases import Phase
from rlprof.trace.analysis.summary import DeviceTime, Summary, TraceSummary
from rlprof.trace.render import tables

_MOST_ROWS = 200
Item = TypeVar("Item")

_SIDES = (
    ("cpu", "CPU only", "policy"),
    ("overlapped", "both", "environment"),
    ("gpu", "GPU only", "learning"),
    ("idle", "neither", "idle"),
)
_REASONS = {"host": "rendering", "launching": "transfer", "data": "storage", "sync": "teacher", "ending": "idle"}
"""Reasons for idle time, and the category whose colour shows each."""


def to_html(summary: Summary) -> str:
    first = plain_name(Path(summary.traces[0].path).name)
    more = f" and {len(summary.traces) - 1} more" if len(summary.traces) > 1 else ""
    body = [_ranks(summary), *(_trace(trace, len(summary.traces) > 1) for trace in summary.traces)]
    return page("rlprof trace", first, join(body), more)


def _ranks(summary: Summary) -> Markup:
    if len(summary.traces) == 1:
        return Markup()
    return _section(
        "Side by side", _table("One row per trace", "trace", tables.label, summary.traces, tables.RANK_COLUMNS)
    )


def _trace(trace: TraceSummary, several: bool) -> Markup:
    parts = [_section(tables.label(trace) if several else "Verdict", *_verdict(trace))]
    if trace.advice:
        parts.append(_section("What to change", element("div", *map(advice_card, trace.advice), class_="cards wide")))
    if trace.window:
        parts += [_section("Phases", *_phases(trace))]
    shapes: Column[Total] = Column("shapes", 0, lambda total: plain_name(total.shapes) if total.shapes else "")
    for title, what, totals, columns in (
        (tables.OPERATORS, "operator", trace.operators, tables.OPERATOR_COLUMNS),
        (tables.KERNELS, "kernel", trace.kernels, tables.KERNEL_COLUMNS),
    ):
        if totals:
            shown = min(len(totals), _MOST_ROWS)
            caption = f"{shown:,} of {len(totals):,}" + ("; the JSON output has all" if shown < len(totals) else "")
            parts.append(_section(title, _table(caption, what, _name, totals, (*columns, shapes), "tall")))
    if trace.copies:
        parts.append(
            _section("Copies", _table("By direction", "direction", tables.direction, trace.copies, tables.COPY_COLUMNS))
        )
    if trace.syncs:
        caption = "By the call that waits, and its callers"
        parts.append(_section(tables.SYNCS, _table(caption, "call", tables.caller, trace.syncs, tables.SYNC_COLUMNS)))
    if trace.memory:
        table_ = _table("Peak per device", "device", tables.peak_of, trace.memory, tables.MEMORY_COLUMNS)
        parts.append(_section("Memory peaks", table_))
    return join(parts)


def _section(title: str, *content: str) -> Markup:
    return element("section", element("h2", plain_name(title)), *content)


def _verdict(trace: TraceSummary) -> list[Markup]:
    shown = []
    if trace.steps:
        times = [step.ns for step in trace.steps]
        shown.append(("per step", duration(sum(times) / len(times)), many(len(times), "step")))
    else:
        shown.append(("recorded", duration(trace.window), "no steps were marked"))
    for device in trace.devices:
        share = device.busy / trace.window if trace.window else 0.0
        shown.append((f"GPU {device.number} busy", as_percent(share), device.name))
    if not trace.devices:
        shown.append(("GPU", "none", "nothing ran on a GPU"))
    shown.append(("size", size(trace.bytes), many(trace.events, "event")))
    found = [figures(shown)]
    found += [element("p", f"{problem}.", class_="warning", role="note") for problem in map(prose, trace.problems)]
    found += [_device_bar(device, trace.window) for device in trace.devices if trace.window]
    return found


def _device_bar(device: DeviceTime, window: int) -> Markup:
    parts = [
        ("kernels", device.kernels, "environment"),
        ("only copies", max(0, device.busy - device.kernels), "policy"),
        *((f"idle: {tables.WHY[why]}", getattr(device.why_idle, why), paint) for why, paint in _REASONS.items()),
    ]
    shown = [part for part in parts if part[1] > 0]
    return join(
        [
            element("h3", f"GPU {device.number}"),
            _stack([(ns / window, paint) for _, ns, paint in shown], "wide-stack"),
            _legend([(f"{name} {as_percent(ns / window)}", paint) for name, ns, paint in shown]),
        ]
    )


def _phases(trace: TraceSummary) -> list[Markup]:
    longest = max((phase.wall for phase in trace.phases), default=1) or 1
    columns: tuple[Column[Phase], ...] = (
        Column("", 0, lambda phase: _stack([(getattr(phase, side) / longest, paint) for side, _, paint in _SIDES])),
        Column("of time", 0, lambda phase: as_percent(phase.wall / trace.window)),
        *tables.PHASE_COLUMNS,
    )
    caption = "Time while each was the innermost annotation"
    return [
        _legend([(name, paint) for _, name, paint in _SIDES]),
        _table(caption, "annotation", _name, trace.phases, columns, "phases"),
    ]


def _name(item: Phase | Total) -> str:
    return item.name


def _table(
    caption: str,
    what: str,
    name_of: Callable[[Item], str],
    items: Sequence[Item],
    columns: Sequence[Column[Item]],
    class_: str = "",
) -> Markup:
    """The first rows, without empty columns."""
    shown = items[:_MOST_ROWS]
    cells = {column.header: [column.of(item) for item in shown] for column in columns}
    filled = {header: values for header, values in cells.items() if any(values)}
    names = [plain_name(name_of(item)) for item in shown]
    return table(caption, (what, *filled), zip(names, *filled.values()), class_)


def _stack(parts: list[tuple[float, str]], class_: str = "") -> Markup:
    return element(
        "span",
        *(
            element("span", style=f"width:{100 * share:.3f}%;background:{colour(paint)}")
            for share, paint in parts
            if share > 0
        ),
        class_=f"bar stack {class_}".strip(),
        aria_hidden="true",
    )


def _legend(entries: list[tuple[str, str]]) -> Markup:
    return element("ul", *(element("li", swatch(paint), name) for name, paint in entries), class_="legend")

"""A summary of traces as one self-contained HTML page without scripts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rlprof.analysis.figures import as_percent, count, duration, many, size
from rlprof.render.html.advice import advice_card
from rlprof.render.html.markup import Markup, colour, element, figures, join, plain_name, prose, table
from rlprof.render.html.plain import page
from rlprof.trace.analysis.calls import Total
from rlprof.trace.analysis.phases import Phase
from rlprof.trace.analysis.summary import DeviceTime, Summary, TraceSummary
from rlprof.trace.render.ranks import label, pace
from rlprof.trace.render.text import WHY, caller

_MOST_ROWS = 200

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
    rows = [
        (
            plain_name(label(trace)),
            str(len(trace.steps)) if trace.steps else "",
            duration(pace(trace)),
            ", ".join(as_percent(device.busy / trace.window) for device in trace.devices if trace.window) or "no GPU",
        )
        for trace in summary.traces
    ]
    return _section("Side by side", table("One row per trace", ("trace", "steps", "per step", "GPU busy"), rows))


def _trace(trace: TraceSummary, several: bool) -> Markup:
    parts = [_section(label(trace) if several else "Verdict", *_verdict(trace))]
    if trace.advice:
        parts.append(_section("What to change", element("div", *map(advice_card, trace.advice), class_="cards wide")))
    if trace.window:
        parts += [_section("Phases", *_phases(trace))]
    for title, rows, name in (
        ("Operators, by their own time on the host", trace.operators, "operator"),
        ("Kernels, by time", trace.kernels, "kernel"),
    ):
        if rows:
            parts.append(_section(title, _totals(rows, name)))
    if trace.copies:
        parts.append(_section("Copies", _copies(trace)))
    if trace.syncs:
        parts.append(_section("Where the host waits for the GPU", _syncs(trace)))
    if trace.memory:
        parts.append(_section("Memory peaks", _memory(trace)))
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
        *((f"idle: {WHY[why]}", getattr(device.why_idle, why), paint) for why, paint in _REASONS.items()),
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

    def row(phase: Phase) -> tuple[str, ...]:
        sides = [(getattr(phase, side) / longest, paint) for side, _, paint in _SIDES]
        cells = [duration(getattr(phase, side)) if getattr(phase, side) else "" for side, _, _ in _SIDES]
        return (
            plain_name(phase.name),
            _stack(sides),
            as_percent(phase.wall / trace.window),
            duration(phase.wall),
            *cells,
            duration(phase.launched) if phase.launched else "",
        )

    headers = ("annotation", "", "of time", "time", *(name for _, name, _ in _SIDES), "launched")
    shown = trace.phases[:_MOST_ROWS]
    return [
        _legend([(name, paint) for _, name, paint in _SIDES]),
        table("Time while each was the innermost annotation", headers, map(row, shown), "phases"),
    ]


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
    return element(
        "ul",
        *(
            element("li", element("i", class_="swatch", style=f"background:{colour(paint)}", aria_hidden="true"), name)
            for name, paint in entries
        ),
        class_="legend",
    )


def _totals(rows: tuple[Total, ...], what: str) -> Markup:
    columns: dict[str, Callable[[Total], str]] = {
        "self": lambda total: duration(total.total),
        "calls": lambda total: count(total.calls),
        "avg": lambda total: duration(total.total / total.calls),
        "longest": lambda total: duration(total.longest),
        "on GPU": lambda total: duration(total.device) if total.device and what == "operator" else "",
        "shapes": lambda total: plain_name(total.shapes) if total.shapes else "",
    }
    shown = rows[:_MOST_ROWS]
    filled = {name: [of(total) for total in shown] for name, of in columns.items()}
    filled = {name: values for name, values in filled.items() if any(values)}
    headers = (what, *filled)
    cells = list(zip([plain_name(total.name) for total in shown], *filled.values()))
    hidden = len(rows) - len(cells)
    caption = f"{len(cells):,} of {len(rows):,}; the JSON output has all" if hidden else f"All {len(rows):,}"
    return table(caption, headers, cells, "tall")


def _copies(trace: TraceSummary) -> Markup:
    rows = [
        (
            plain_name(f"{copies.direction}: {copies.name}"),
            count(copies.calls),
            duration(copies.total),
            "" if copies.bytes is None else size(copies.bytes),
            "" if copies.rate is None else f"{size(copies.rate)}/s",
            count(copies.small) if copies.small else "",
        )
        for copies in trace.copies
    ]
    return table("By direction", ("direction", "calls", "time", "bytes", "rate", "up to 4 KB"), rows)


def _syncs(trace: TraceSummary) -> Markup:
    rows = [
        (plain_name(caller(sync)), duration(sync.waited), count(sync.calls), duration(sync.waited / sync.calls))
        for sync in trace.syncs[:_MOST_ROWS]
    ]
    return table("By the call that waits, and its callers", ("call", "waited", "calls", "avg"), rows)


def _memory(trace: TraceSummary) -> Markup:
    rows = [
        (
            peak.device,
            size(peak.allocated),
            "" if peak.reserved is None else size(peak.reserved),
            plain_name(peak.phase) if peak.phase else "",
            count(peak.changes),
            size(peak.largest),
        )
        for peak in trace.memory
    ]
    headers = ("device", "allocated", "reserved", "in", "changes", "largest")
    return table("Peak per device", headers, rows)

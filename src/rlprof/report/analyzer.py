"""The output of `rlprof analyze` as text: operations by bottleneck score, and the thresholds they pass."""

from __future__ import annotations

from functools import partial

from rich.console import Console

from rlprof.analysis.bottlenecks import WEIGHTS, Bottleneck
from rlprof.analysis.figures import count, duration, size
from rlprof.analysis.report import Report
from rlprof.render.layout import Column, Layout, plain
from rlprof.report.headline import origin, speed

MOST_ROWS = 10
MOST_RECOMMENDATIONS = 40


def _points(part: str) -> Column[Bottleneck]:
    weight = WEIGHTS[part]
    name = {"per_call": "call", "memory": "mem", "device_memory": "gpu"}.get(part, part)
    return Column(f"{name}/{weight}", 7, lambda item: f"{weight * getattr(item, part):.1f}")


_COLUMNS: tuple[Column[Bottleneck], ...] = (
    Column("score", 5, lambda item: f"{item.score:.1f}"),
    _points("time"),
    _points("per_call"),
    _points("memory"),
    _points("device_memory"),
    Column("of wall", 7, lambda item: f"{item.share:.1f}%"),
    Column("own avg", 7, lambda item: "" if item.own_ns is None else duration(item.own_ns)),
    Column("calls", 7, lambda item: count(item.calls)),
    Column("mem rise", 8, lambda item: "" if item.memory_rise is None else size(item.memory_rise), 2),
    Column("GPU rise", 8, lambda item: "" if item.device_rise is None else size(item.device_rise), 1),
)


def to_text(report: Report, width: int = 110) -> str:
    """The same as `render`, as a string without colour or trailing spaces."""
    return plain(partial(render, report), width)


def render(report: Report, console: Console) -> None:
    layout = Layout(console)
    layout.line(origin(report), "dim")
    for sentence, style in speed(report):
        layout.line(sentence, style)
    found = report.findings
    shown = found.bottlenecks[:MOST_ROWS]
    layout.heading(f"Top {len(shown)} bottlenecks" if shown else "Bottlenecks")
    if shown:
        layout.table("operation", [item.operation for item in shown], shown, _COLUMNS)
        layout.line(
            "Score: 40 x share of the wall time + 30 x own time per call (100 ms or more: 1) + 15 x memory and 15 x "
            "GPU memory needed per call (100 MB or more: 1)."
        )
    else:
        layout.line("No operation has enough calls; a smaller --min-calls shows more.")
    if found.recommendations:
        layout.heading("Recommendations")
    for item in found.recommendations[:MOST_RECOMMENDATIONS]:
        layout.line(f"{item.severity}: {item.text}.", "red" if item.severity == "CRITICAL" else "")
    if found.advice:
        layout.line("")
        layout.line("`rlprof report` shows what to change, with evidence and the expected gain.")

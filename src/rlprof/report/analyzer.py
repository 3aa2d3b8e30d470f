"""The output of `rlprof analyze` as text: operations by bottleneck score, and the thresholds they pass."""

from __future__ import annotations

from rich.console import Console

from rlprof.analysis.bottlenecks import WEIGHTS, Bottleneck
from rlprof.analysis.figures import count, duration, if_known, size
from rlprof.analysis.report import Report
from rlprof.render.layout import Column, Layout, as_text
from rlprof.report.answer import incomplete, origin, speed, trained

MOST_ROWS = 10
MOST_RECOMMENDATIONS = 40


def _points(part: str, dispensable: int) -> Column[Bottleneck]:
    weight = WEIGHTS[part]
    name = {"per_call": "call", "memory": "mem", "device_memory": "gpu"}.get(part, part)
    return Column(f"{name}/{weight}", 7, lambda item: f"{weight * getattr(item, part):.1f}", dispensable)


_COLUMNS: tuple[Column[Bottleneck], ...] = (
    Column("score", 5, lambda item: f"{item.score:.1f}"),
    _points("time", 1),
    _points("per_call", 3),
    _points("memory", 5),
    _points("device_memory", 6),
    Column("share", 6, lambda item: f"{item.share:.1f}%"),
    Column("own time per call", 17, lambda item: if_known(duration, item.own_ns), 2),
    Column("calls", 7, lambda item: count(item.calls), 4),
    Column("mem rise", 8, lambda item: if_known(size, item.memory_rise), 8),
    Column("GPU rise", 8, lambda item: if_known(size, item.device_rise), 7),
)


def render(report: Report, console: Console) -> None:
    layout = Layout(console)
    layout.line(origin(report), "dim")
    if missing := incomplete(report):
        layout.line(missing, "bold red")
    layout.line(speed(report.facts), "bold")
    if not trained(report.facts):
        return
    found = report.findings
    shown = found.bottlenecks[:MOST_ROWS]
    layout.heading(f"Top {len(shown)} bottlenecks" if shown else "Bottlenecks")
    if shown:
        layout.table("operation", [item.operation for item in shown], shown, _COLUMNS)
        layout.line(
            "A score is the sum of four parts: up to 40 points for the share of the training time, up to 30 for the "
            "own time per call (all for 100 ms or more), and up to 15 each for the memory and the GPU memory that a "
            "call needs (all for 100 MB or more)."
        )
    else:
        layout.line("No operation has enough calls. Use a smaller --min-calls.")
    if found.recommendations:
        layout.heading("Recommendations")
    for item in found.recommendations[:MOST_RECOMMENDATIONS]:
        layout.line(f"{item.severity}: {item.text}.", "red" if item.severity == "CRITICAL" else "")
    if found.findings:
        layout.line("")
        layout.line("`rlprof report` shows what to change, with evidence and the gain.")


to_text = as_text(render, width=110)

"""Expected speed as text: from a recorded session, or from parts that were measured in isolation."""

from __future__ import annotations

from rich.console import Console

from rlprof.analysis.expectation import IsolatedExpectation, IsolatedPart
from rlprof.analysis.figures import as_percent, duration, rate
from rlprof.analysis.report import Report
from rlprof.render.layout import Column, Layout, as_text

_COLUMNS: tuple[Column[IsolatedPart], ...] = (
    Column("steps/s alone", 13, lambda part: rate(part.steps_per_second)),
    Column("half of the rounds", 18, lambda part: f"{rate(part.slowest)} to {rate(part.fastest)}", 1),
    Column("share", 6, lambda part: as_percent(part.share)),
)


def section(report: Report, layout: Layout) -> None:
    expected = report.findings.expectation
    if expected is None:
        return
    layout.heading("Expected speed")
    allowed = f"{rate(expected.steps_per_second)} steps/s, " if expected.steps_per_second else ""
    layout.line(
        f"The training reached {100 * expected.ratio:.0f}% of {allowed}the speed that its parts allow one after the "
        "other, each at its typical pace."
    )
    least = sum(part.typical_ns for part in expected.parts) / 100  # a part below 1 % never limits the speed
    parts = [part for part in expected.parts if part.steps_per_second and part.typical_ns >= least]
    if parts:
        speeds = (f"{part.category} {rate(part.steps_per_second or 0)} steps/s" for part in parts)
        layout.line(f"Each part alone: {', '.join(speeds)}")
    lost = [loss for loss in expected.losses if loss.ns]
    if lost:
        layout.line("Lost: " + ", ".join(f"{duration(loss.ns)} in {loss.what}" for loss in lost))


def render(expected: IsolatedExpectation, console: Console) -> None:
    layout = Layout(console)
    layout.heading("Expected speed")
    layout.table("part", [part.name for part in expected.parts], expected.parts, _COLUMNS)
    layout.line(
        f"One after the other the parts could do {rate(expected.expected)} steps/s. "
        f"The training did {rate(expected.reached)}, {as_percent(expected.ratio)} of that."
    )
    if expected.poor:
        layout.line("Less than half: something is set up wrongly, or the time goes to something outside these parts.")


to_text = as_text(render)

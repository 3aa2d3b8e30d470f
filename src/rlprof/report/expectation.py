"""Expected speed as text: from a recorded session, or from parts that were measured in isolation."""

from __future__ import annotations

from rich.console import Console

from rlprof.analysis.breakdown import RLPROF, UNATTRIBUTED
from rlprof.analysis.expectation import IsolatedExpectation, IsolatedPart
from rlprof.analysis.figures import as_percent, duration, rate
from rlprof.analysis.report import Report
from rlprof.render.layout import Column, Layout, as_text
from rlprof.report.tree import OWN_CODE

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
    reached = f"{100 * expected.ratio:.0f}%"
    layout.line(
        "If every call took as long as a typical call of its operation, and nothing else took time, the training would "
        + (
            f"reach {rate(expected.steps_per_second)} steps/s. It reached {reached} of that."
            if expected.steps_per_second
            else f"take {reached} of the time that it took."
        )
    )
    least = sum(part.typical_ns for part in expected.parts) / 100  # a part below 1 % never limits the speed
    parts = [part for part in expected.parts if part.steps_per_second and part.typical_ns >= least]
    if parts:
        speeds = (f"{part.category} {rate(part.steps_per_second or 0)} steps/s" for part in parts)
        layout.line(f"If one part were all of the training: {', '.join(speeds)}.")
    lost = [loss for loss in expected.losses if loss.ns]
    if lost:
        what = {UNATTRIBUTED: OWN_CODE, RLPROF: "rlprof itself"}
        shown = (f"{duration(loss.ns)} in {what.get(loss.what, loss.what)}" for loss in lost)
        layout.line(f"Time lost: {', '.join(shown)}.")


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

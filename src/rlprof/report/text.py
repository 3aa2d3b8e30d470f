"""The report as text for a terminal or a file: the headline first, then the figures behind it."""

from __future__ import annotations

from rich.console import Console

from rlprof.analysis.report import Report
from rlprof.render.layout import Layout, as_text
from rlprof.report import expectation, sections
from rlprof.report.breakdown import render_parts
from rlprof.report.headline import origin, sentences


def render(report: Report, console: Console) -> None:
    """The whole report. Each finding is printed once: the first advice at the top, the others below the tree."""
    layout = Layout(console)
    layout.line(origin(report), "dim")
    for sentence, style in sentences(report, lambda name: layout.name(name, 40)):
        layout.line(sentence, style)
    if not report.facts.breakdown.wall_ns:
        return
    sections.reasons(report, layout)
    layout.heading("Where the time went")
    render_parts(report.facts.breakdown, console)
    for section in (
        sections.more_advice,
        sections.operations,
        sections.progress,
        sections.rollout,
        sections.resources,
        sections.parallelism,
        expectation.section,
        sections.run,
    ):
        section(report, layout)


to_text = as_text(render, width=120)

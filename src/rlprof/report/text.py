"""The whole report as text for a terminal or a file: the first screen, then the figures behind it."""

from __future__ import annotations

from rich.console import Console

from rlprof.analysis.report import Report
from rlprof.render.layout import Layout, as_text
from rlprof.report import expectation, first_screen, sections
from rlprof.report.answer import trained
from rlprof.report.breakdown import render_parts


def render(report: Report, console: Console) -> None:
    """The first screen, then everything else."""
    layout = Layout(console)
    first_screen.render_top(report, console)
    if not trained(report.facts):
        return
    sections.findings(report, layout)
    layout.heading("Where the training time went")
    render_parts(report.facts.breakdown, console)
    for section in (
        sections.lines,
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

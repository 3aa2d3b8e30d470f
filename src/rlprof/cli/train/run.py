"""Trains in this process, recorded, and then shows the requested reports."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from typing import Any

import click

from rlprof.analysis.components import components
from rlprof.analysis.expectation import isolated_expectation
from rlprof.cli.output import format_of, show, write
from rlprof.cli.report import build
from rlprof.experiment.expectation import measure_isolated
from rlprof.render.components import render as render_components
from rlprof.report.expectation import render as render_expectation
from rlprof.report.formats import NAMES, renderer
from rlprof.report.text import render as render_report
from rlprof.run.start import drive
from rlprof.workloads.progress import Progress
from rlprof.workloads.settings import Settings
from rlprof.workloads.workload import Workload


def run(
    workload: Workload, settings: Settings, options: dict[str, Any] | None,
    *, breakdown: bool, reports: tuple[str, ...], expect: bool, progress: bool,
) -> None:  # fmt: skip
    """Train, then show what was requested. `options` are those of the recording, or None to train without one."""
    for report in reports:
        format_of(report, NAMES)  # refuse an unknown ending before the training, not after it
    if workload.prepare(settings):
        return
    shown = Progress(workload.name, workload.score, progress)
    recording = drive({**options, "settings": asdict(settings)}) if options is not None else None
    try:
        with recording or nullcontext():
            program = workload.load()
            program.train(settings, shown)
    finally:
        shown.end()
    click.echo(_learned(shown))
    if recording is not None and recording.folder is not None and (breakdown or reports):
        made = build(str(recording.folder))
        if breakdown and workload.components:
            show(partial(render_components, components(made.facts.breakdown, workload.components)))
        elif breakdown:
            show(partial(render_report, made))
        for report in reports:
            write(renderer(format_of(report, NAMES))(made), report)
            click.echo(f"wrote {report}", err=True)
    if expect:
        click.echo(f"{workload.name}: measuring its parts in isolation", err=True)
        expected = isolated_expectation(measure_isolated(program.parts(settings)), shown.steps_per_second)
        show(partial(render_expectation, expected))


def _learned(progress: Progress) -> str:
    known = progress.known
    if len(known) < 2:
        return f"{progress.name}: {progress.steps:,} steps"
    part = max(1, len(known) // 5)
    first, last = sum(known[:part]) / part, sum(known[-part:]) / part
    return f"{progress.name}: {progress.steps:,} steps, {progress.score} {first:,.4g} at first, {last:,.4g} at the end"

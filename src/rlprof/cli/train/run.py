"""Trains in this process, recorded, and then shows the requested reports."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
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
from rlprof.workloads.workload import Program, Workload


@dataclass(frozen=True)
class Request:
    """The options that are not settings of the training."""

    recording: dict[str, Any] | None
    """The options of `drive`; None to train without a recording."""
    breakdown: bool
    reports: tuple[str, ...]
    expect: bool
    progress: bool


def run(workload: Workload, settings: Settings, request: Request) -> None:
    """Train, then show."""
    for report in request.reports:
        format_of(report, NAMES)  # refuse an unknown ending before the training, not after it
    if workload.prepare(settings):
        return
    progress = Progress(workload.name, workload.score, request.progress)
    recording = drive({**request.recording, "settings": asdict(settings)}) if request.recording is not None else None
    try:
        with recording or nullcontext():
            program = workload.load()
            program.train(settings, progress)
    finally:
        progress.end()
    click.echo(_learned(progress))
    if recording is not None and recording.folder is not None:
        _show(workload, recording.folder, request)
    if request.expect:
        _expect(workload, program, settings, progress)


def _learned(progress: Progress) -> str:
    known = progress.known
    if len(known) < 2:
        return f"{progress.name}: {progress.steps:,} steps"
    part = max(1, len(known) // 5)
    first, last = sum(known[:part]) / part, sum(known[-part:]) / part
    return f"{progress.name}: {progress.steps:,} steps, {progress.score} {first:,.4g} at first, {last:,.4g} at the end"


def _show(workload: Workload, folder: Path, request: Request) -> None:
    if not request.breakdown and not request.reports:
        return
    made = build(str(folder))
    if request.breakdown and workload.components:
        show(partial(render_components, components(made.facts.breakdown, workload.components)))
    elif request.breakdown:
        show(partial(render_report, made))
    for report in request.reports:
        write(renderer(format_of(report, NAMES))(made), report)
        click.echo(f"wrote {report}", err=True)


def _expect(workload: Workload, program: Program, settings: Settings, progress: Progress) -> None:
    if sys.stderr is not None:
        click.echo(f"{workload.name}: measuring its parts in isolation", err=True)
    expected = isolated_expectation(measure_isolated(program.parts(settings)), progress.steps_per_second)
    show(partial(render_expectation, expected))

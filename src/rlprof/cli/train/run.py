"""Trains in this very process, recorded, and shows what was asked for afterwards."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from rlprof.analysis.components import components
from rlprof.analysis.isolated_parts import alone
from rlprof.cli.output import show, write
from rlprof.cli.report import build, format_of
from rlprof.experiment.isolated_parts import measure_isolated
from rlprof.render.components import render as render_components
from rlprof.report.formats import renderer
from rlprof.report.isolated_parts import render as render_alone
from rlprof.report.text import render as render_report
from rlprof.run.start import drive
from rlprof.workloads.progress import Progress
from rlprof.workloads.settings import Settings
from rlprof.workloads.workload import Program, Workload


@dataclass(frozen=True)
class Asked:
    """Of the command line, what is not a setting of the training."""

    recording: dict[str, Any] | None
    """The options of `drive`; None: only train."""
    breakdown: bool
    reports: tuple[str, ...]
    expect: bool
    progress: bool


def run(workload: Workload, settings: Settings, asked: Asked) -> None:
    """Train, then show."""
    for report in asked.reports:
        format_of(report)  # an ending that nobody knows is said before the training, not after it
    if workload.prepare(settings):
        return
    progress = Progress(workload.name, workload.score, asked.progress)
    recording = drive({**asked.recording, "settings": asdict(settings)}) if asked.recording is not None else None
    try:
        with recording or nullcontext():
            program = workload.load()
            program.train(settings, progress)
    finally:
        progress.end()
    click.echo(_learned(progress))
    if recording is not None and recording.folder is not None:
        _show(workload, recording.folder, asked)
    if asked.expect:
        _expect(workload, program, settings, progress)


def _learned(progress: Progress) -> str:
    known = progress.known
    if len(known) < 2:
        return f"{progress.name}: {progress.steps:,} steps"
    part = max(1, len(known) // 5)
    first, last = sum(known[:part]) / part, sum(known[-part:]) / part
    return f"{progress.name}: {progress.steps:,} steps, {progress.score} {first:,.4g} at first, {last:,.4g} at the end"


def _show(workload: Workload, folder: Path, asked: Asked) -> None:
    if not asked.breakdown and not asked.reports:
        return
    made = build(str(folder))
    if asked.breakdown and workload.components:
        show(partial(render_components, components(made.facts.breakdown, workload.components)))
    elif asked.breakdown:
        show(partial(render_report, made))
    for report in asked.reports:
        write(renderer(format_of(report))(made), report)
        click.echo(f"wrote {report}", err=True)


def _expect(workload: Workload, program: Program, settings: Settings, progress: Progress) -> None:
    if sys.stderr is not None:
        click.echo(f"{workload.name}: measuring its parts alone", err=True)
    show(partial(render_alone, alone(measure_isolated(program.parts(settings)), progress.steps_per_second)))

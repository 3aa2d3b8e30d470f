"""The report as text for a terminal or a file: the verdict first, then what it rests on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

from rich.console import Console

from rlprof.analysis.facts import RUNNING
from rlprof.analysis.figures import duration, many, rate
from rlprof.analysis.report import Report
from rlprof.render.layout import Layout, plain
from rlprof.report import sections
from rlprof.report.breakdown import render_parts
from rlprof.report.verdict import around_training, first_try, incomplete, largest_share


def to_text(report: Report, width: int = 120) -> str:
    """The same as `render`, as a string without colour or trailing spaces."""
    return plain(partial(render, report), width)


def render(report: Report, console: Console) -> None:
    """Everything there is to say."""
    layout = Layout(console)
    layout.line(origin(report), "dim")
    verdict(report, layout)
    if not report.facts.breakdown.wall_ns:
        return
    layout.heading("Where the time went")
    render_parts(report.facts.breakdown, console)
    sections.advice(report.findings.advice, layout)
    sections.recommendations(report, layout)
    sections.operations(report, layout)
    sections.progress(report, layout)
    sections.rollout(report, layout)
    sections.resources(report, layout)
    sections.parallelism(report, layout)
    sections.expectation(report, layout)
    sections.run(report, layout)


def verdict(report: Report, layout: Layout) -> None:
    """For who reads nothing else: how fast, what takes most, what to try."""
    for sentence, style in sentences(report, lambda name: layout.name(name, 40)):
        layout.line(sentence, style)


def sentences(report: Report, shown: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    """Those of the verdict, each with its style; `shown` shortens a name."""
    facts = report.facts
    whole, progress = facts.breakdown, facts.progress
    if missing := incomplete(report):
        yield missing, "bold red"
    if not whole.wall_ns:
        yield "Nothing was recorded.", "bold"
        return
    spent = f"in {duration(progress.training_ns)}"
    if whole.iterations:
        spent += f", {many(whole.iterations, 'iteration')}"
    spent += around_training(progress)
    speed = "" if progress.steps_per_second is None else f"{rate(progress.steps_per_second)} steps/s "
    yield f"{speed}{spent}.".capitalize(), "bold"
    largest = shown(whole.largest.name)
    yield f"Largest account: {largest}, {largest_share(whole)}.", "bold"
    yield f"Try first: {first_try(report).sentence}", "bold"
    expected = report.findings.expectation
    if expected is not None and expected.poor:
        yield (
            f"Below half of what its parts could do: {100 * expected.ratio:.0f}%. "
            f"Most is lost to {expected.losses[0].what} ({duration(expected.losses[0].ns)}).",
            "bold red",
        )


def origin(report: Report) -> str:
    """Which run, when, and how it ended unless that is as it should be."""
    session = report.facts.session
    started = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(session.started / 1e9))
    ended = "" if report.facts.ended in ("finished", "ended") else f", {report.facts.ended}"
    if report.facts.ended == RUNNING:
        ended = ", still running or killed: this is what its last flush left"
    return f"{session.name}, {started}{ended}"

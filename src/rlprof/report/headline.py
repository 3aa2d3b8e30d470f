"""The top of every report, in the same words: how fast, what takes longest, what to try first."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rlprof.analysis.breakdown import RLPROF, UNATTRIBUTED, Breakdown
from rlprof.analysis.facts import RUNNING
from rlprof.analysis.figures import duration, many, rate
from rlprof.analysis.progress import Progress
from rlprof.analysis.report import Report
from rlprof.ledger.catalogue import PHASES
from rlprof.render.advice import gain_of

NOTABLE = 0.01
"""Fraction of the training. A shorter time after the training's end is not mentioned."""
NOT_RECORDED = "Nothing was recorded."


def origin(report: Report) -> str:
    """Which run, when it started, and how it ended if it did not simply finish."""
    session = report.facts.session
    started = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(session.started / 1e9))
    ended = "" if report.facts.ended in ("finished", "ended") else f", {report.facts.ended}"
    if report.facts.ended == RUNNING:
        ended = ", still running or killed: figures are as of its last flush"
    return f"{session.name}, {started}{ended}"


def sentences(report: Report, shown: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    """The sentences of the headline, each with its style. `shown` shortens a name."""
    yield from speed(report)
    whole = report.facts.breakdown
    if not whole.wall_ns:
        return
    yield f"Largest account: {shown(whole.largest.name)}, {largest_share(whole)}.", "bold"
    yield first_try(report).sentence, "bold"
    if warning := poor(report):
        yield warning, "bold red"


def speed(report: Report) -> Iterator[tuple[str, str]]:
    """What is missing from the session, if anything; then how fast the training was."""
    progress, iterations = report.facts.progress, report.facts.breakdown.iterations
    if missing := incomplete(report):
        yield missing, "bold red"
    if not report.facts.breakdown.wall_ns:
        yield NOT_RECORDED, "bold"
        return
    spent = f"in {duration(progress.training_ns)}"
    if iterations:
        spent += f", {many(iterations, 'iteration')}"
    reached = "" if progress.steps_per_second is None else f"{rate(progress.steps_per_second)} steps/s "
    yield f"{reached}{spent}{around_training(progress)}.".capitalize(), "bold"


def largest_share(whole: Breakdown) -> str:
    """`47% (979 ms)`, or `47% of 2.06 s (979 ms)` if there was start-up, which the share leaves out."""
    basis = "" if whole.after_startup_ns == whole.wall_ns else f" of {duration(whole.after_startup_ns)}"
    return f"{whole.largest.share:.0f}%{basis} ({duration(whole.largest.ledger_ns)})"


def around_training(progress: Progress) -> str:
    """What came before and after the training, and which parts the steps per second leave out."""
    found = [f"after {duration(progress.startup_ns)} of start-up"] if progress.startup_ns else []
    parts = (("prefill", progress.prefill_ns), ("evaluation", progress.evaluation_ns))
    beside = [f"{duration(ns)} of {name}" for name, ns in parts if ns]
    if beside:
        found.append(f"with {' and '.join(beside)}")
    if progress.suspended_ns:
        found.append(f"without {duration(progress.suspended_ns)} in which the process was stopped")
    if progress.after_ns > NOTABLE * progress.training_ns:
        found.append(f"before {duration(progress.after_ns)} at the end")
    return "".join(f", {part}" for part in found)


@dataclass(frozen=True, slots=True)
class FirstTry:
    action: str
    gain: str | None = None
    found: bool = True
    """False if there is nothing specific to try."""

    @property
    def sentence(self) -> str:
        gain = f" ({self.gain})" if self.gain else ""
        return f"Try first{gain}: {self.action}" if self.found else self.action


def first_try(report: Report) -> FirstTry:
    """The advice with the largest gain. Without advice: spans where they are missing, or nothing specific."""
    if report.findings.advice:
        first = report.findings.advice[0]
        return FirstTry(first.action, gain_of(first))
    whole = report.facts.breakdown
    largest = whole.largest.name
    if largest == UNATTRIBUTED:
        return FirstTry("Put spans around the code that no span covers.")
    if largest == RLPROF:
        return FirstTry("Put spans around larger pieces of work.")
    inside = (row.ledger_ns < row.subtree_ledger_ns for row in whole.rows if row.operation == largest)
    if largest in PHASES and any(inside):
        return FirstTry(f"Put spans around the code that {largest} runs itself, outside of the operations inside it.")
    return FirstTry("No specific fix found.", found=False)


def incomplete(report: Report) -> str | None:
    """What the session lacks, so that nobody takes its figures for those of the whole run."""
    lost = report.facts.lost
    if lost is None:
        return None
    counted = [many(number, name) for number, name in ((lost.iterations, "iteration"), (lost.calls, "span")) if number]
    what = f" with {' and '.join(counted)}" if counted else ""
    return (
        f"Incomplete: the last {duration(lost.wall_ns)} of the run{what} could not be written ({lost.because}). "
        "No figure here includes it."
    )


def poor(report: Report) -> str | None:
    """A warning if the training was much slower than its parts allow."""
    expected = report.findings.expectation
    if expected is None or not expected.poor:
        return None
    most = expected.losses[0]
    reached = f"Slow: the training reached {100 * expected.ratio:.0f}% of the speed that its parts allow."
    return f"{reached} Most is lost in {most.what} ({duration(most.ns)})."

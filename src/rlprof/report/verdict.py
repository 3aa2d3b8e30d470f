"""What to try first, in the same words in every report."""

from __future__ import annotations

from dataclasses import dataclass

from rlprof.analysis.advice.advice import Advice
from rlprof.analysis.breakdown import RLPROF, UNATTRIBUTED, Breakdown
from rlprof.analysis.figures import duration, many
from rlprof.analysis.progress import Progress
from rlprof.analysis.report import Report

NOTABLE = 0.01
"""Of the training: a shorter time after its end is not worth a word."""


def largest_share(whole: Breakdown) -> str:
    """Of the largest account: `47% (979 ms)`, or `47% of 2.06 s (979 ms)` where that is not the whole wall time."""
    basis = "" if whole.after_startup_ns == whole.wall_ns else f" of {duration(whole.after_startup_ns)}"
    return f"{whole.largest.share:.0f}%{basis} ({duration(whole.largest.ledger_ns)})"


def around_training(progress: Progress) -> str:
    """What came before and after the training, and what of it steps per second leave out."""
    said = [f"after {duration(progress.startup_ns)} of start-up"] if progress.startup_ns else []
    parts = (("prefill", progress.prefill_ns), ("evaluation", progress.evaluation_ns))
    beside = [f"{duration(ns)} of {name}" for name, ns in parts if ns]
    if beside:
        said.append(f"with {' and '.join(beside)}")
    if progress.suspended_ns:
        said.append(f"without {duration(progress.suspended_ns)} in which the process was stopped")
    if progress.after_ns > NOTABLE * progress.training_ns:
        said.append(f"before {duration(progress.after_ns)} at the end")
    return "".join(f", {part}" for part in said)


@dataclass(frozen=True, slots=True)
class FirstTry:
    why: str
    action: str
    gain: str | None

    @property
    def sentence(self) -> str:
        return f"{self.action.rstrip('.')} ({self.gain})." if self.gain else self.action


def incomplete(report: Report) -> str | None:
    """What is missing, for who would take the figures for those of the whole run."""
    lost = report.facts.lost
    if lost is None:
        return None
    counted = [many(number, name) for number, name in ((lost.iterations, "iteration"), (lost.calls, "span")) if number]
    what = f" with {' and '.join(counted)}" if counted else ""
    return (
        f"Incomplete: the last {duration(lost.wall_ns)} of the run{what} could not be written ({lost.because}). "
        "Every figure here is without them."
    )


def first_try(report: Report) -> FirstTry:
    """The advice with the largest gain; else what takes most."""
    if report.findings.advice:
        first = report.findings.advice[0]
        return FirstTry(first.title, first.action, gain_of(first))
    largest = report.facts.breakdown.largest.name
    if largest == UNATTRIBUTED:
        return FirstTry("Most of the time has no name yet.", "Put spans around what is not measured.", None)
    if largest == RLPROF:
        return FirstTry("Most of the time is rlprof's own.", "Put spans around larger pieces of work.", None)
    return FirstTry(
        "No rule has evidence for more than where the time goes.",
        f"Look at {largest}: nothing else takes longer.",
        None,
    )


def gain_of(advice: Advice) -> str | None:
    """How many times faster, at most; None where speed is not the point, or cannot be told."""
    return f"up to {advice.most:.1f}x as fast" if advice.most >= 1.05 else None

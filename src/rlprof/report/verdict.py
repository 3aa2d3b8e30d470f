"""What to try first, in the same words in every report."""

from __future__ import annotations

from dataclasses import dataclass

from rlprof.analysis.advice.advice import Advice
from rlprof.analysis.breakdown import RLPROF, UNATTRIBUTED
from rlprof.analysis.figures import duration, many
from rlprof.analysis.report import Report


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

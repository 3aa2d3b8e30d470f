"""The answer of a report, in the same words everywhere: how fast the training is, and what to change."""

from __future__ import annotations

import time
from collections.abc import Iterator

from rlprof.analysis.advice.finding import Finding
from rlprof.analysis.advice.waiting import children_unseen
from rlprof.analysis.breakdown import RLPROF, UNATTRIBUTED
from rlprof.analysis.code import Line
from rlprof.analysis.drift import drift
from rlprof.analysis.facts import RUNNING, UNENDED, Facts
from rlprof.analysis.figures import as_percent, duration, many, percent, rate
from rlprof.analysis.report import Report
from rlprof.ledger.catalogue import STARTUP, SUSPENDED
from rlprof.render.names import outside_name
from rlprof.report.tree import function_of_framework, largest_parts

NOTABLE = 0.01
"""Fraction of the training. A shorter time outside of it is not mentioned."""
NOT_RECORDED = "Nothing was recorded."
NO_TRAINING = "No training was seen: no environment step, no backward pass and no iteration."
NO_CAUSE = "No known problem found."
UNSEEN = (
    "The training waits while child processes compute, in which rlprof recorded nothing. To see what they do, put "
    'spans into their code: `with rlprof.profile("env_step"):`.'
)
TREND = 2.0
"""Standard deviations from chance, and LEAST_TREND of the speed: below, the speed is called steady."""
LEAST_TREND = 0.05


def origin(report: Report) -> str:
    """Which run, when it started, and how it ended if it did not simply finish."""
    session = report.facts.session
    started = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(session.started / 1e9))
    ended = "" if report.facts.ended in ("finished", "ended") else f", {report.facts.ended}"
    if report.facts.ended in UNENDED:
        how = report.facts.ended.replace(RUNNING, "still running")
        ended = f", {how}: figures are as of its last flush"
    return f"{session.name}, {started}{ended}"


def speed(facts: Facts) -> str:
    """How fast, over which time, and whether that changed."""
    if not facts.breakdown.wall_ns:
        return NOT_RECORDED
    if not trained(facts):
        return f"{NO_TRAINING} The program ran for {duration(facts.breakdown.wall_ns)}."
    done = facts.progress
    reached = "" if done.steps_per_second is None else f"{rate(done.steps_per_second)} steps/s over "
    iterations = f" ({many(done.iterations, 'iteration')})" if done.iterations else ""
    unseen = "" if reached or done.steps else ", no environment steps counted"
    return (
        f"{reached}{duration(facts.breakdown.training_ns)} of training{iterations}{unseen}{trend(facts)}.".capitalize()
    )


def trained(facts: Facts) -> bool:
    """True if an operation, a step or an iteration was recorded after start-up."""
    seen = {row.operation for row in facts.breakdown.rows} - {STARTUP, UNATTRIBUTED, RLPROF, SUSPENDED}
    return facts.breakdown.training_ns > 0 and bool(seen or facts.progress.steps or facts.progress.iterations)


def trend(facts: Facts) -> str:
    """How the speed changed from the first quarter to the last; empty if the run is too short to tell."""
    found = drift(facts.series)
    if found is None or not found.before_ns or not found.after_ns:
        return ""
    if abs(found.z) < TREND or abs(1 - found.before_ns / found.after_ns) < LEAST_TREND:
        return ", steady"
    speed = facts.progress.steps_per_second
    slowest, fastest = (1e9 / end(found.before_ns, found.after_ns) for end in (max, min))
    if found.unit == "step" and speed is not None and not slowest <= speed <= fastest:
        return ""  # it neither rises nor falls, but was faster or slower in between
    before, after = (rate(1e9 / ns) for ns in (found.before_ns, found.after_ns))
    return f", {'falling' if found.after_ns > found.before_ns else 'rising'} from {before} to {after} {found.unit}s/s"


def around(facts: Facts) -> str | None:
    """What is not counted: start-up, evaluation and so on."""
    training = facts.breakdown.training_ns
    parts = [(outside_name(part.name), part.ns) for part in facts.breakdown.outside]
    named = [f"{duration(ns)} of {name}" for name, ns in parts if ns > NOTABLE * training]
    sentence = f"Not counted: {_and(named)}." if named and training else None
    evaluation = facts.progress.evaluation_ns
    if evaluation > NOTABLE * training and facts.progress.steps_per_second:
        apart = f"Steps/s leave out the {duration(evaluation)} of evaluation in it."
        sentence = f"{sentence} {apart}" if sentence else apart
    return sentence


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


def gain_text(finding: Finding) -> str | None:
    """`1.6x as fast (95% interval 1.4 to 1.9)`; None if the finding is not about speed."""
    gain = finding.gain
    if gain is None:
        return None
    return f"{_times(gain.estimate)}x as fast (95% interval {_times(gain.low)} to {_times(gain.high)})"


def headline(finding: Finding) -> str:
    """The cause, with its place first."""
    if finding.place is None or finding.place.where in finding.cause:
        return finding.cause
    return f"{finding.place.where}: {finding.cause}"


def no_cause(facts: Facts) -> str:
    """If nothing specific was found: the largest part, and the lines that it comes from."""
    largest = next(iter(largest_parts(facts)), None)
    if largest is None:
        return NO_CAUSE
    lines = facts.code.within(largest.operation)[:2]
    where = f", mostly from {' and '.join(place(line) for line in lines)}" if lines else ""
    what = "The largest operation is" if largest.name == largest.operation else "The largest part is"
    unseen = f" {UNSEEN}" if children_unseen(facts) else ""
    return f"{NO_CAUSE} {what} {largest.name} ({percent(largest.share)}){where}.{unseen}"


def place(line: Line) -> str:
    function = function_of_framework(line) or line.function
    return f"{line.where} ({function})" if function != "<module>" else line.where


def end_of_run(report: Report) -> Iterator[str]:
    """At most seven lines; the folder of the session and the next command follow them."""
    facts = report.facts
    if missing := incomplete(report):
        yield missing
    yield speed(facts)
    if trained(facts):
        if apart := around(facts):
            yield apart
        if largest := largest_parts(facts)[:3]:
            yield f"Most time: {', '.join(f'{part.name} {percent(part.share)}' for part in largest)}."
        yield from (note.text for note in report.findings.notes[:1])
        if report.findings.findings:
            first = report.findings.findings[0]
            gain = gain_text(first)
            yield f"Change first{f', {gain}' if gain else ''}: {headline(first)}"
        else:
            yield no_cause(facts)


def _and(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _times(factor: float) -> str:
    return f"{factor:.0f}" if factor >= 9.95 else f"{factor:.1f}" if factor >= 1.95 else f"{factor:.2f}"


def share_of_training(line: Line) -> str:
    return f"{as_percent(line.share)} of the training time"

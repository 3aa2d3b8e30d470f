"""Makes frames from readings and reports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from rlprof.analysis.breakdown import UNATTRIBUTED, Breakdown
from rlprof.analysis.changes import Change
from rlprof.analysis.facts import RUNNING
from rlprof.analysis.report import Report
from rlprof.analysis.resources import Resources
from rlprof.analysis.window import Path as Place
from rlprof.analysis.window import Window
from rlprof.ledger.catalogue import PHASES
from rlprof.live.details import unix_time
from rlprof.live.frame import Frame, Part, Speed, Usage
from rlprof.live.lanes import lanes_now
from rlprof.live.process_state import is_stopped
from rlprof.live.reading import Reading
from rlprof.live.stuck import stuck_of, whole_seconds
from rlprof.report.answer import incomplete, no_cause, speed, trained

MOST_POINTS = 120
LATE = 5.0
"""Seconds without a flush after which the figures are called old."""
EMPTY = "Nothing was written yet: the training is starting."


def frame_of(folder: Path, reading: Reading, report: Report | None, changes: Sequence[Change], now: float) -> Frame:
    info, state = reading.info, reading.state
    running = reading.ended.startswith(RUNNING)
    written = state.written / 1e9 if state else 0.0
    age = max(0.0, now - written) if running and state else 0.0
    wall = state.wall / 1e9 if state else 0.0
    lanes, hidden = lanes_now(reading, late=age > LATE)
    newest = reading.iterations[-1] if reading.iterations else None
    frame = Frame(
        folder=folder,
        name=info.name,
        state="finished" if reading.ended == "ended" else reading.ended,
        started=info.started / 1e9,
        written=written,
        age_s=age,
        wall_s=wall + age,
        iterations=state.iterations if state else 0,
        planned=state.planned.get("iteration") if state else None,
        iteration_ns=_typical(reading, report),
        iteration_now_ns=reading.window_ns / reading.window_iterations if reading.window_iterations else None,
        open_s=(state.time - newest.end) / 1e9 + (age if age > LATE else 0.0) if running and state and newest else None,
        steps=state.steps if state else 0,
        episodes=state.episodes if state else 0,
        window_iterations=reading.window_iterations,
        window_ns=reading.window_ns,
        speed=_speed(reading, report),
        lanes=lanes,
        hidden_lanes=hidden,
        usage=_usage(reading),
        marks=tuple(replace(mark, time=unix_time(info, mark.time)) for mark in reading.marks),
        changes=tuple(changes) if running else (),
        problem=_problem(reading, report, age),
    )
    if running and state is not None:
        stuck = stuck_of(
            now=now,
            state=reading.ended,
            written=written,
            idle_s=state.idle_ns / 1e9,
            iteration_ns=frame.iteration_ns,
            lanes=lanes,
            is_stopped=age > LATE and is_stopped(info.pid),
        )
        if stuck is not None:  # no step has ended since
            frame = replace(frame, speed=replace(frame.speed, now=0.0))
        frame = replace(frame, eta_s=None if stuck else _eta(frame, reading), stuck=stuck)
    return frame if report is None else _with_report(frame, report, reading.window if running else Window())


def _with_report(frame: Frame, report: Report, now: Window) -> Frame:
    facts, findings = report.facts, report.findings
    is_trained = trained(facts)
    return replace(
        frame,
        training_s=facts.breakdown.training_ns / 1e9,
        parts=tuple(_parts(facts.breakdown, now)),
        outside=facts.breakdown.outside,
        findings=findings.findings if is_trained else (),
        notes=findings.notes if is_trained else (),
        usage=frame.usage if frame.is_running else _whole_usage(frame.usage, facts.resources),
        no_finding="" if findings.findings and is_trained else no_cause(facts) if is_trained else speed(facts),
    )


def _parts(breakdown: Breakdown, now: Window) -> Iterator[Part]:
    path: list[str] = []
    for row in breakdown.rows:
        path[row.depth :] = [row.operation]
        # The time outside of all operations has no path, and a name only for people.
        place: Place = () if row.category == UNATTRIBUTED else tuple(path)
        yield Part(
            operation=row.operation,
            category=row.category,
            depth=row.depth,
            is_phase=row.operation in PHASES,
            share=row.share,
            own_share=100 * row.ledger_ns / breakdown.training_ns if breakdown.training_ns else 0.0,
            now=now.share(place, with_below=bool(place)),
            own_now=now.share(place, with_below=False),
            ns=row.subtree_ledger_ns,
            calls=row.calls,
            mean_ns=row.mean_ns,
            path=tuple(path),
        )


def _speed(reading: Reading, report: Report | None) -> Speed:
    state = reading.state
    unit = "step" if state is not None and (state.steps or not state.iterations) else "iteration"
    counted = reading.window_steps if unit == "step" else reading.window_iterations
    seen = reading.window
    in_training = (seen.training_ns - seen.evaluation_ns) / reading.gained_ns if reading.gained_ns else 1.0
    seconds = reading.window_ns / 1e9 * in_training
    known = seconds > 0 and reading.ended.startswith(RUNNING) and (unit == "iteration" or (state and state.steps))
    now = max(0, counted) / seconds if known else None
    if report is None:
        return Speed(unit, now)
    done = report.facts.progress
    training = done.training_ns / 1e9
    mean = done.steps_per_second
    if unit == "iteration":
        mean = done.iterations / training if done.iterations and training else None
    return Speed(unit, now, mean, tuple(_history(report, unit)))


def _history(report: Report, unit: str) -> Iterator[float]:
    """Points of the series, neighbours merged: units over time, with what lies between the iterations."""
    series = report.facts.series
    done = series.steps if unit == "step" else [last - first + 1 for first, last in zip(series.first, series.last)]
    group = max(1, -(-len(series) // MOST_POINTS))
    starts = [*series.start_ns, series.start_ns[-1] + series.wall_ns[-1]] if len(series) else []
    for first in range(0, len(series), group):
        ns = starts[min(first + group, len(series))] - starts[first]
        if ns > 0:
            yield max(0.0, sum(done[first : first + group]) / (ns / 1e9))


def _typical(reading: Reading, report: Report | None) -> float | None:
    """Median of all iterations, as in the report. Until there is one: of the newest."""
    spread = report.facts.progress.iteration_ns if report is not None else None
    if spread is not None:
        return spread.p50_ns
    walls = [row.wall_ns / (row.last - row.first + 1) for row in reading.iterations]
    return median(walls) if walls else None


def _eta(frame: Frame, reading: Reading) -> float | None:
    """By the pace of now."""
    if frame.planned and frame.iteration_now_ns and frame.iterations < frame.planned:
        each = frame.iteration_now_ns / 1e9
        return max(0.0, (frame.planned - frame.iterations) * each - (frame.open_s or 0.0))
    planned = reading.state.planned.get("env_step") if reading.state else None
    if planned and frame.speed.unit == "step" and frame.speed.now and frame.steps < planned:
        return (planned - frame.steps) / frame.speed.now
    return None


def _usage(reading: Reading) -> Usage:
    cores, machine = reading.info.cores, reading.info.memory
    samples = reading.samples
    if not samples:
        return Usage(cores=cores, memory_machine=machine)
    newest = next(
        (one for one in reversed(samples) if one.cpu is not None), samples[-1]
    )  # the last one may have no rates
    memory = [(one.rss or 0) + (one.children_rss or 0) for one in samples if one.rss is not None]
    return Usage(
        cpu=newest.cpu,
        children_cpu=newest.children_cpu,
        machine_cpu=newest.machine_cpu,
        cores=cores,
        memory=memory[-1] if memory and newest.rss is not None else None,
        memory_available=newest.machine_available,
        memory_machine=machine,
        gpu=newest.device_busy,
        gpu_memory=newest.device_memory,
        cpu_history=tuple((one.cpu or 0.0) + (one.children_cpu or 0.0) for one in samples if one.cpu is not None),
        memory_history=tuple(map(float, memory)),
    )


def _whole_usage(usage: Usage, used: Resources) -> Usage:
    """Means and peaks of a run that has ended, because its last sample says little."""
    samples = used.samples
    sums = (own + (children or 0) for own, children in zip(samples.rss, samples.children_rss) if own is not None)
    return replace(
        usage,
        cpu=used.cpu_mean,
        children_cpu=used.children_cpu_mean,
        machine_cpu=used.machine_cpu_mean,
        memory=max(sums, default=used.rss_peak),
        gpu=used.device_busy_mean,
        gpu_memory=used.device_memory_peak,
    )


def _problem(reading: Reading, report: Report | None, age: float) -> str:
    if reading.state is None:
        return EMPTY
    if age > LATE:
        return f"The training has not written for {whole_seconds(age)}. All figures are as of then."
    return (incomplete(report) or "") if report is not None else ""

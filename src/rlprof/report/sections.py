"""The sections of the text report below its tree, in their order. One that has nothing to say says nothing."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import partial

from rlprof.analysis.advice.advice import Advice
from rlprof.analysis.bottlenecks import Recommendation
from rlprof.analysis.figures import count, duration, many, percent, rate, size
from rlprof.analysis.operations import Operation
from rlprof.analysis.parallelism import Capacity, Concurrency, Worker
from rlprof.analysis.report import Report
from rlprof.analysis.rollout import Step
from rlprof.render.layout import Column, Layout
from rlprof.report.verdict import gain_of

MOST_ROWS = 40
"""Of the operations table; the JSON and CSV reports have all."""
FEW_ROWS = 10


def _time(ns: float | None) -> str:
    return "" if ns is None else duration(ns)


def _bytes(number: int | None) -> str:
    return "" if number is None else size(number)


def advice(given: Sequence[Advice], layout: Layout) -> None:
    if not given:
        return
    layout.heading("What to change")
    for number, item in enumerate(given, 1):
        gain = gain_of(item)
        layout.line(f"{number}. {item.title}{f'  [{gain}]' if gain else ''}", "bold")
        for evidence in item.evidence:
            layout.line(f"- {evidence}", indent=3)
        layout.line(f"Do: {item.action}", indent=3)
        layout.line(f"Check: {item.check}", indent=3)


def recommendations(report: Report, layout: Layout) -> None:
    if not report.findings.recommendations:
        return
    layout.heading("Recommendations")
    for item in report.findings.recommendations[:MOST_ROWS]:
        layout.line(recommendation(item), "red" if item.severity == "CRITICAL" else "")


def recommendation(item: Recommendation) -> str:
    return f"{item.severity}: {item.text}."


_OPERATION_COLUMNS: tuple[Column[Operation], ...] = (
    Column("calls", 7, lambda operation: count(operation.calls)),
    Column("total", 7, lambda operation: duration(operation.busy_ns)),
    Column("avg", 7, lambda operation: _time(operation.mean_ns)),
    Column("p50", 7, lambda operation: _time(operation.p50_ns), 3),
    Column("p95", 7, lambda operation: _time(operation.p95_ns), 1),
    Column("p99", 7, lambda operation: _time(operation.p99_ns), 4),
    Column("min", 7, lambda operation: _time(operation.min_ns), 5),
    Column("max", 7, lambda operation: _time(operation.max_ns), 2),
    Column("CPU", 4, lambda operation: "" if operation.cpu_percent is None else f"{operation.cpu_percent:.0f}%"),
    Column("mem peak", 8, lambda operation: _bytes(operation.memory_peak)),
    Column("mem rise", 8, lambda operation: _bytes(operation.memory_rise)),
    Column("GPU peak", 8, lambda operation: _bytes(operation.device_peak)),
    Column("GPU time", 8, lambda operation: duration(operation.device_ns) if operation.device_calls else "", 1),
)


def operations(report: Report, layout: Layout) -> None:
    shown = report.facts.operations[:MOST_ROWS]
    layout.heading("Operations")
    if not shown:
        layout.line("No operation was recorded.")
        return
    layout.table("operation", [item.operation for item in shown], shown, _OPERATION_COLUMNS)
    if hidden := len(report.facts.operations) - len(shown):
        layout.line(f"{hidden:,} more with less time: see --format csv.")
    layout.line(
        "Total: what all calls took, with what they called, on all lanes; no share of the wall time. "
        "CPU: of the operation's own time."
    )


def progress(report: Report, layout: Layout) -> None:
    facts = report.facts
    done = facts.progress
    if not done.iterations and not done.episodes and not done.steps:
        return
    layout.heading("Iterations and episodes")
    if spread := done.iteration_ns:
        steps = f", {many(done.steps_per_iteration, 'step')} each" if done.steps_per_iteration else ""
        layout.line(
            f"{many(done.iterations, 'iteration')}{steps}: mean {duration(spread.mean_ns)}, "
            f"p50 {duration(spread.p50_ns)}, p95 {duration(spread.p95_ns)}, min {duration(spread.min_ns)}, "
            f"max {duration(spread.max_ns)}"
        )
    if done.seconds_per_episode is not None:
        steps = f", {many(done.steps_per_episode, 'step')} each" if done.steps_per_episode else ""
        layout.line(
            f"{many(done.episodes, 'episode')}{steps}: {duration(done.seconds_per_episode * 1e9)} of training each"
        )
    if done.steps:
        layout.line(many(done.steps, "environment step"))
    shown = facts.operations[:FEW_ROWS]

    series = facts.series
    turns = sum(last - first + 1 for first, last in zip(series.first, series.last))

    def per_iteration(operation: Operation) -> str:
        spent = sum(series.ledger_ns.get(operation.operation, ()))
        return duration(spent / turns) if turns and spent else ""

    columns: list[Column[Operation]] = [
        Column("per iteration", 14, per_iteration),
        Column("per episode", 14, partial(_per, done.episodes)),
        Column("per 1000 steps", 14, partial(_per, done.steps / 1000)),
    ]
    if shown:
        layout.table("wall time", [item.operation for item in shown], shown, columns)


def _per(number: float, operation: Operation) -> str:
    return duration(operation.ledger_ns / number) if number else ""


def rollout(report: Report, layout: Layout) -> None:
    tree = report.findings.rollout
    if tree is None:
        return
    layout.heading(f"One rollout ({tree.rollouts:,} of them)")
    arrow = "  <-- BOTTLENECK"
    columns: list[Column[Step]] = [
        Column("", 7, lambda step: duration(step.ns)),
        Column("", len(arrow), lambda step: arrow if step.bottleneck else ""),
    ]
    steps = [Step("Rollout total", -1, tree.total_ns, False), *tree.steps]
    shown = [step for step in steps if step.ns >= tree.total_ns / 1000]
    layout.table("per rollout", ["  " * (step.depth + 1) + step.operation for step in shown], shown, columns)


def resources(report: Report, layout: Layout) -> None:
    used = report.facts.resources
    layout.heading("System resources")
    if not used.samples.time_ns:
        layout.line("Not sampled: the run was too short, or sampling failed.")
        return
    lines = [
        ("process CPU", used.cpu_mean, "of one core"),
        ("children's CPU", used.children_cpu_mean if used.children_most else None, "of one core"),
        ("machine CPU", used.machine_cpu_mean, f"of {report.facts.session.machine_cores} cores"),
        ("without a core", used.held_up_mean, "of the time: ready to run, but others had the cores"),
        ("GPU busy", used.device_busy_mean, "of the time, the busiest"),
    ]
    for name, value, of in lines:
        if value is not None:
            layout.line(f"{name + ':':<17}{value:.0f}% {of}")
    for name, peak in (
        ("peak memory:", used.rss_peak),
        ("children's peak:", used.children_rss_peak if used.children_most else None),
        ("GPU memory peak:", used.device_memory_peak),
    ):
        if peak is not None:
            of = f" (up to {used.children_most} processes, shared pages counted in each)" if "children" in name else ""
            layout.line(f"{name:<17}{size(peak)}{of}")
    if used.device_busy_mean is None:
        layout.line("GPU:             not measured")
    if used.torch_threads is not None:
        layout.line(f"torch threads:   {used.torch_threads}")
    if used.sampling_share is not None and used.flushing_share is not None:
        layout.line(f"rlprof beside:   {used.flushing_share:.2f}% of one core to write the session")
        layout.line(f"                 {used.sampling_share:.2f}% of one core to sample this")


def parallelism(report: Report, layout: Layout) -> None:
    found = report.facts.parallelism
    layout.heading("Parallelism")
    if found.capacity is not None:
        columns: list[Column[Capacity]] = [
            Column("of capacity", 11, lambda item: percent(item.share)),
            Column("CPU time", 8, lambda item: duration(item.cpu_ns)),
        ]
        shown = [item for item in found.capacity if item.cpu_ns]
        layout.table(f"CPU time, of {found.cores} cores", [item.name for item in shown], shown, columns)
    layout.line(
        f"Efficiency of {found.lanes} lane{'s' if found.lanes != 1 else ''}: {100 * found.efficiency:.0f}% = "
        f"load balance {100 * found.load_balance:.0f}% x communication {100 * found.communication_efficiency:.0f}%"
    )
    if found.lanes > 1:
        columns_of_lanes: list[Column[Worker]] = [
            Column("at work", 7, lambda worker: percent(worker.share)),
            Column("", 8, lambda worker: duration(worker.useful_ns)),
        ]
        shown_lanes = found.workers[:FEW_ROWS]
        layout.table("lane", [f"{worker.kind} {worker.lane}" for worker in shown_lanes], shown_lanes, columns_of_lanes)
    if found.concurrency:
        columns_of_operations: list[Column[Concurrency]] = [Column("at once", 7, lambda item: f"{item.mean:.2f}x")]
        shown_operations = found.concurrency[:FEW_ROWS]
        names = [item.operation for item in shown_operations]
        layout.table("average concurrency", names, shown_operations, columns_of_operations)


def expectation(report: Report, layout: Layout) -> None:
    expected = report.findings.expectation
    if expected is None:
        return
    layout.heading("Expected speed")
    allowed = f": {rate(expected.steps_per_second)} steps/s" if expected.steps_per_second else ""
    layout.line(
        f"Reached {100 * expected.ratio:.0f}% of what the parts do at their typical pace, one after the other{allowed}."
    )
    least = sum(part.typical_ns for part in expected.parts) / 100  # what takes less never limits
    alone = [part for part in expected.parts if part.steps_per_second and part.typical_ns >= least]
    if alone:
        layout.line(
            "Alone: " + ", ".join(f"{part.category} {rate(part.steps_per_second or 0)} steps/s" for part in alone)
        )
    lost = [loss for loss in expected.losses if loss.ns]
    if lost:
        layout.line("Lost: " + ", ".join(f"{loss.what} {duration(loss.ns)}" for loss in lost))


def run(report: Report, layout: Layout) -> None:
    session = report.facts.session
    layout.heading("The run")
    layout.line(f"command:  {shlex.join(session.command)}")
    layout.line(f"machine:  {session.processor}, {session.cores} cores, {size(session.memory)}, {session.platform}")
    packages = ", ".join(f"{name} {version}" for name, version in session.packages.items())
    layout.line(f"software: Python {session.python}, {packages}")
    if session.git is not None:
        changed = ", with changes" if session.git.changed else ""
        layout.line(f"git:      {session.git.revision[:12]} on {session.git.branch}{changed}")
    if session.settings:
        layout.line("settings: " + ", ".join(f"{name}={value}" for name, value in session.settings.items()))
    if session.core == "python":
        layout.line(
            "Recorded by rlprof's Python twin: the C core is not built there, and a span costs about 100 times more."
        )

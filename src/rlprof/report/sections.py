"""The sections of the text report. A section without content prints nothing."""

from __future__ import annotations

import shlex
from functools import partial

from rlprof.analysis.advice.lines import shortened
from rlprof.analysis.advice.waiting import children_unseen
from rlprof.analysis.breakdown import UNATTRIBUTED
from rlprof.analysis.figures import count, duration, if_known, many, percent, size
from rlprof.analysis.operations import Operation
from rlprof.analysis.parallelism import Capacity, Concurrency, Worker
from rlprof.analysis.report import Report
from rlprof.analysis.rollout import Step
from rlprof.render.advice import check
from rlprof.render.layout import Column, Layout
from rlprof.render.names import LONGEST_PATH
from rlprof.report.answer import gain_text, headline, no_cause
from rlprof.report.breakdown import CPU_TIME_UNFIT

MOST_ROWS = 40
"""In the operations table. The JSON and CSV reports have all operations."""
FEW_ROWS = 10


def findings(report: Report, layout: Layout) -> None:
    layout.heading("What to change")
    if not report.findings.findings:
        layout.line(no_cause(report.facts))
    for number, item in enumerate(report.findings.findings, 1):
        gain = gain_text(item)
        layout.line(f"{number}. {headline(item)}", "bold")
        layout.line(f"Change: {item.change}", indent=3)
        if gain:
            layout.line(f"Gain: {gain}, as `rlprof whatif` predicts it.", indent=3)
        for line in item.evidence:
            layout.line(f"- {line}", indent=3)
        check(item.check, layout, indent=3)


MOST_LINES = 5
LEAST_CONCURRENCY = 0.005


def lines(report: Report, layout: Layout) -> None:
    """The lines of code that the own time of the largest operations comes from."""
    code = report.facts.code
    names = [item.operation for item in report.facts.operations[:FEW_ROWS] if code.within(item.operation)]
    names += [UNATTRIBUTED] if code.within(UNATTRIBUTED) else []
    if not names:
        return
    layout.heading("Your code, by line")
    for name in names:
        layout.line(f"{name}: own time", "bold")
        for line in code.within(name)[:MOST_LINES]:
            source = f"  `{shortened(line.source)}`" if line.source else ""
            layout.line(
                f"{100 * line.share:3.0f}%  {layout.path(line.where, LONGEST_PATH)} {line.function}{source}", indent=2
            )


_OPERATION_COLUMNS: tuple[Column[Operation], ...] = (
    Column("calls", 7, lambda operation: count(operation.calls), 2),
    Column("total", 7, lambda operation: duration(operation.busy_ns)),
    Column("avg", 7, lambda operation: if_known(duration, operation.mean_ns), 1),
    Column("p50", 7, lambda operation: if_known(duration, operation.p50_ns), 8),
    Column("p95", 7, lambda operation: if_known(duration, operation.p95_ns), 6),
    Column("p99", 7, lambda operation: if_known(duration, operation.p99_ns), 9),
    Column("min", 7, lambda operation: if_known(duration, operation.min_ns), 10),
    Column("max", 7, lambda operation: if_known(duration, operation.max_ns), 7),
    Column("CPU", 4, lambda operation: if_known("{:.0f}%".format, operation.cpu_percent), 3),
    Column("mem peak", 8, lambda operation: if_known(size, operation.memory_peak), 5),
    Column("mem rise", 8, lambda operation: if_known(size, operation.memory_rise), 4),
    Column("GPU peak", 8, lambda operation: if_known(size, operation.device_peak), 5),
    Column("GPU time", 8, lambda operation: duration(operation.device_ns) if operation.device_calls else "", 6),
)


def operations(report: Report, layout: Layout) -> None:
    shown = report.facts.operations[:MOST_ROWS]
    layout.heading("Operations")
    if not shown:
        layout.line("No operation was recorded.")
        return
    layout.table("operation", [item.operation for item in shown], shown, _OPERATION_COLUMNS)
    if hidden := len(report.facts.operations) - len(shown):
        layout.line(f"{hidden:,} smaller operations are not shown: see --format csv.")
    layout.line(
        "Total: the time of all calls on all lanes, including what they called. It may exceed the wall time. "
        "CPU: the part of the operation's own time that its thread spent computing."
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
        each = duration(done.seconds_per_episode * 1e9)
        layout.line(f"{many(done.episodes, 'episode')}{steps}: {each} of training per episode")
    if done.steps:
        layout.line(many(done.steps, "environment step"))
    series = facts.series
    iterations = sum(last - first + 1 for first, last in zip(series.first, series.last))

    def per_iteration(operation: Operation) -> str:
        spent = sum(series.ledger_ns.get(operation.operation, ()))
        return duration(spent / iterations) if iterations and spent else ""

    columns: list[Column[Operation]] = [
        Column("per iteration", 14, per_iteration),
        Column("per episode", 14, partial(_per, done.episodes), 2),
        Column("per 1000 steps", 14, partial(_per, done.steps / 1000), 1),
    ]
    if shown := facts.operations[:FEW_ROWS]:
        layout.table("wall time", [item.operation for item in shown], shown, columns)


def _per(number: float, operation: Operation) -> str:
    return duration(operation.ledger_ns / number) if number else ""


def rollout(report: Report, layout: Layout) -> None:
    tree = report.findings.rollout
    if tree is None:
        return
    layout.heading(f"One rollout (mean of {tree.rollouts:,})")
    arrow = "  <-- BOTTLENECK"
    columns: list[Column[Step]] = [
        Column("", 7, lambda step: duration(step.ns)),
        Column("", len(arrow), lambda step: arrow if step.bottleneck else ""),
    ]
    steps = [Step("Rollout total", -1, tree.total_ns, False), *tree.steps]
    shown = [step for step in steps if step.ns >= tree.total_ns / 1000]
    layout.table("per rollout", ["  " * (step.depth + 1) + step.operation for step in shown], shown, columns)


def used(report: Report) -> list[tuple[str, str, str]]:
    """What was used of the machine, as far as it was measured: name, figure, remark."""
    used = report.facts.resources
    children = used.children_most > 0
    rates = (
        ("process CPU", used.cpu_mean, "of one core"),
        ("children's CPU", used.children_cpu_mean if children else None, "of one core"),
        ("machine CPU", used.machine_cpu_mean, f"of {many(report.facts.session.machine_cores, 'core')}"),
        ("without a core", used.held_up_mean, "of the time: ready to run, but all cores were taken"),
        ("GPU busy", used.device_busy_mean, "of the time (busiest GPU)"),
    )
    shared = f"(up to {many(used.children_most, 'process')}, shared pages counted in each)"
    peaks = (
        ("peak memory", used.rss_peak, ""),
        ("children's peak", used.children_rss_peak if children else None, shared),
        ("GPU memory peak", used.device_memory_peak, ""),
    )
    found = [(name, f"{mean:.0f}%", of) for name, mean, of in rates if mean is not None]
    found += [(name, size(peak), remark) for name, peak, remark in peaks if peak is not None]
    return found + ([("torch threads", f"{used.torch_threads}", "")] if used.torch_threads is not None else [])


def resources(report: Report, layout: Layout) -> None:
    cost = report.facts.resources
    layout.heading("System resources")
    if not cost.samples.time_ns:
        layout.line("Not sampled: the run was too short, or sampling failed.")
        return
    for name, figure, remark in used(report):
        layout.line(f"{name + ':':<17}{figure} {remark}".rstrip())
    if cost.device_busy_mean is None:
        layout.line("GPU:             not measured")
    if cost.sampling_share is not None and cost.flushing_share is not None:
        layout.line(f"rlprof itself:   {cost.flushing_share:.2f}% of one core to write the session")
        layout.line(f"                 {cost.sampling_share:.2f}% of one core to sample the machine")


def parallelism(report: Report, layout: Layout) -> None:
    found = report.facts.parallelism
    layout.heading("Parallelism")
    if found.capacity is not None:
        columns: list[Column[Capacity]] = [
            Column("of capacity", 11, lambda item: percent(item.share)),
            Column("CPU time", 8, lambda item: duration(item.cpu_ns)),
        ]
        shown = [item for item in found.capacity if item.cpu_ns]
        layout.table(f"CPU time of {many(found.cores, 'core')}", [item.name for item in shown], shown, columns)
    elif report.facts.breakdown.cpu != "off":
        layout.line(CPU_TIME_UNFIT)
    busiest = f"{100 * found.communication_efficiency:.0f}% of the training time"
    if found.lanes == 1 and children_unseen(report.facts):
        layout.line(
            f"The driver was at work, and not waiting, for {busiest}. Child processes computed outside of spans."
        )
    elif found.lanes == 1:
        layout.line(f"One lane did all the work. It was at work, and not waiting, for {busiest}.")
    elif found.lanes:
        layout.line(
            f"{found.lanes} lanes (threads, asyncio tasks or processes) did the work. On average, a lane was at work, "
            f"and not waiting, for {100 * found.efficiency:.0f}% of the training time; the busiest for {busiest}."
        )
    if found.lanes > 1:
        columns_of_lanes: list[Column[Worker]] = [
            Column("at work", 7, lambda worker: percent(worker.share)),
            Column("", 8, lambda worker: duration(worker.useful_ns)),
        ]
        shown_lanes = found.workers[:FEW_ROWS]
        layout.table("lane", [f"{worker.kind} {worker.lane}" for worker in shown_lanes], shown_lanes, columns_of_lanes)
    if shown_operations := [item for item in found.concurrency[:FEW_ROWS] if item.mean >= LEAST_CONCURRENCY]:
        columns_of_operations: list[Column[Concurrency]] = [
            Column("calls open at once, on average", 30, lambda item: f"{item.mean:.2f}")
        ]
        names = [item.operation for item in shown_operations]
        layout.table("on several lanes", names, shown_operations, columns_of_operations)


def run(report: Report, layout: Layout) -> None:
    session = report.facts.session
    layout.heading("The run")
    layout.command(f"command:  {shlex.join(session.command)}")
    layout.command(f"folder:   {session.folder}")
    layout.line(f"machine:  {session.processor}, {session.cores} cores, {size(session.memory)}, {session.platform}")
    packages = ", ".join(f"{name} {version}" for name, version in session.packages.items())
    layout.line(f"software: Python {session.python}, {packages}")
    if session.git is not None:
        changed = ", with changes" if session.git.changed else ""
        layout.line(f"git:      {session.git.revision[:12]} on {session.git.branch}{changed}")
    if session.settings:
        layout.line("settings: " + ", ".join(f"{name}={value}" for name, value in session.settings.items()))
    if session.core == "python":
        layout.line("Recorded by rlprof's Python twin, whose spans cost about 100 times more than those of the C core.")

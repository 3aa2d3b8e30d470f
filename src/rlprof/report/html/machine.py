"""The bottom of the HTML report: use of the cores, expected speed, meaning of the figures."""

from __future__ import annotations

from collections.abc import Iterator

from rlprof.analysis.figures import duration, if_known, many, percent, rate
from rlprof.analysis.parallelism import CHILDREN, IDLE, OUTSIDE
from rlprof.analysis.report import Report
from rlprof.render.html.markup import Markup, bar_row, element, figures, join, plain_name, short_name, table
from rlprof.report import breakdown
from rlprof.report.sections import used

_MOST_CONCURRENT = 20
_LONGEST_NAME = 34
_COLOURS = {OUTSIDE: "outside", CHILDREN: "children", IDLE: "idle"}
"""Colours of the entries that are not categories."""


def resources(report: Report) -> Markup:
    """Means and peaks. The chart below them shows both over time."""
    found = used(report)
    return figures(found) if found else Markup()


def parallelism(report: Report) -> Markup:
    found = report.facts.parallelism
    if not found.lanes:
        return element("p", "No lane recorded a span.", class_="empty")
    equation = [
        ("efficiency", f"{100 * found.efficiency:.0f}%", f"of {many(found.lanes, 'lane')}"),
        (
            "= load balance",
            f"{100 * found.load_balance:.0f}%",
            "the average lane's working time, of the busiest lane's",
        ),
        (
            "x busiest lane",
            f"{100 * found.communication_efficiency:.0f}%",
            "of the training time at work, and not waiting",
        ),
    ]
    parts: list[str] = [figures(equation)]
    if found.capacity is None:
        parts.append(element("p", _no_capacity(report), class_="empty"))
    else:
        rows = [
            bar_row(
                item.name, (percent(item.share), duration(item.cpu_ns)), item.share, _COLOURS.get(item.name, item.name)
            )
            for item in found.capacity
            if item.cpu_ns
        ]
        caption = f"CPU time of {many(found.cores, 'core')}"
        parts.append(table(caption, ("taken by", "share", "CPU time", ""), rows, "bars"))
    if found.lanes > 1:
        names = [short_name(f"{worker.kind} {worker.lane}", _LONGEST_NAME) for worker in found.workers]
        lanes = [
            bar_row(name, (percent(worker.share), duration(worker.useful_ns)), worker.share)
            for name, worker in zip(names, found.workers)
        ]
        parts.append(table("Working time of each lane", ("lane", "share", "time", ""), lanes, "bars"))
    several = [(item.operation, f"{item.mean:.2f}") for item in found.concurrency[:_MOST_CONCURRENT]]
    concurrent = [(short_name(name, _LONGEST_NAME), mean) for name, mean in several if mean != "0.00"]
    if concurrent:
        caption = "Calls open at once, for operations on several lanes"
        parts.append(table(caption, ("operation", "on average"), concurrent))
    return join(parts)


def _no_capacity(report: Report) -> str:
    return breakdown.NO_CPU_TIME if report.facts.breakdown.cpu == "off" else breakdown.CPU_TIME_UNFIT


def expectation(report: Report) -> Markup:
    expected = report.findings.expectation
    if expected is None:
        return element("p", "No operation was recorded, so there is no expected speed.", class_="empty")
    reached = report.facts.progress.steps_per_second
    shown = [("reached", f"{100 * expected.ratio:.0f}%", "of what typical calls would allow")]
    if reached is not None and expected.steps_per_second is not None:
        shown.append(("steps per second", rate(reached), f"of {rate(expected.steps_per_second)}"))
    parts: list[str] = [figures(shown)]
    whole = report.facts.breakdown.training_ns or 1
    needed = []
    for part in expected.parts:
        if part.typical_ns:
            cells = duration(part.typical_ns), if_known(rate, part.steps_per_second)
            needed.append(bar_row(part.category, cells, 100 * part.typical_ns / whole, part.category))
    headers = ("category", "needs", "steps/s if it were all", "")
    parts.append(table("Time that the training needs if all calls are typical ones", headers, needed, "bars"))
    # For rows of the breakdown, show the same share as there, which is rounded so that all rows sum to 100.
    shares = {row.category: row.share for row in report.facts.breakdown.rows[-2:]}
    lost = []
    for loss in expected.losses:
        if loss.ns:
            share = 100 * loss.ns / whole
            lost.append(bar_row(loss.what, (duration(loss.ns), percent(shares.get(loss.what, share))), share))
    if lost:
        parts.append(table("Lost training time", ("to", "time", "share", ""), lost, "bars"))
    return join(parts)


def notes(report: Report) -> Markup:
    return element("ul", *(element("li", line) for line in _notes(report)))


def _notes(report: Report) -> Iterator[str]:
    whole = report.facts.breakdown
    own, used = whole.rows[-1], report.facts.resources
    yield (
        "Share and time: the training time that a row accounts for. Every instant of the driver (the thread whose "
        "progress is the progress of the training) is in exactly one account, so shares sum to 100%."
    )
    yield (
        "Operation: a named part of the training, such as env_step. Own time: its time without the operations that it "
        "calls. Lane: a thread, an asyncio task or a worker process."
    )
    yield "In the call tree, share and time include the rows below. In the operations table they do not."
    yield "Total: the durations of all calls on all lanes, including what they called. It may exceed the training time."
    yield "Unattributed: your code outside of all operations. rlprof: the cost of measuring, which is in no other row."
    yield "p50, p95, p99: half, 95% and 99% of the calls were shorter. They are exact to 2.2%; min and max are exact."
    yield from breakdown.notes(whole, plain_name)
    yield (
        f"Measuring took {percent(own.share)} of the training time: {duration(own.ledger_ns)} "
        f"± {duration(own.uncertainty_ns)}."
    )
    if used.flushing_share is not None and used.sampling_share is not None:
        yield (
            f"In the background, rlprof used {used.flushing_share:.2f}% of one core to write the session, and "
            f"{used.sampling_share:.2f}% to sample the machine."
        )

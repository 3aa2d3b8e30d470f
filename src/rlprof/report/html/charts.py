"""Data for the charts of the HTML report: of a bounded size, with every name ready to be shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from rlprof.analysis.breakdown import RLPROF, UNATTRIBUTED
from rlprof.analysis.lanes import OTHERS, LaneTimeline
from rlprof.analysis.report import Report
from rlprof.render.html.markup import plain_name
from rlprof.report.html.boxes import function_boxes, tree_boxes
from rlprof.report.tree import OWN_CODE

_MOST_AREAS = 10
_MOST_BUCKETS = 40_000
"""Most buckets of all histograms together: a third of a megabyte."""
OTHER = "all other operations"


def chart_data(report: Report) -> dict[str, Any]:
    return {
        "tree": tree_boxes(report.facts),
        "functions": function_boxes(report.facts),
        "concerned": _concerned(report),
        "lanes": lanes_data(report.facts.lanes, report),
        "ledger": _ledger(report),
        "distributions": _distributions(report),
        "resources": _resources(report),
    }


def _concerned(report: Report) -> list[str]:
    """The operations of the first finding, whose functions are drawn first: where its line takes longest, else all."""
    for finding in report.findings.findings[:1]:
        if finding.place is not None:
            name = report.facts.code.main_operation(finding.place)
            return [plain_name(name)] if name is not None else []
        return [plain_name(name) for name in finding.operations]
    return []


def lanes_data(timeline: LaneTimeline, report: Report) -> dict[str, Any] | None:
    """One strip per lane: what it worked at, over the iterations."""
    if not timeline.strips:
        return None
    category_of = {operation.operation: operation.category for operation in report.facts.operations}
    category_of |= {UNATTRIBUTED: UNATTRIBUTED, OTHERS: "remaining"}
    names = {UNATTRIBUTED: OWN_CODE, OTHERS: OTHER}
    strips = [
        {
            "name": plain_name(strip.name),
            "kind": strip.kind,
            "areas": [
                {
                    "name": names.get(name) or plain_name(name),
                    "category": category_of.get(name, "other"),
                    "ns": at_work,
                }
                for name, at_work in strip.operations.items()
            ],
        }
        for strip in timeline.strips
    ]
    times = {"first": timeline.first, "last": timeline.last, "wall": timeline.wall_ns}
    return {**times, "strips": strips, "hidden": timeline.hidden}


def _ledger(report: Report) -> dict[str, Any] | None:
    """The largest operations over the iterations, sorted by category; then the rest."""
    series = report.facts.series
    if not len(series):
        return None
    category_of = {operation.operation: operation.category for operation in report.facts.operations}
    totals = {name: sum(ns) for name, ns in series.ledger_ns.items() if name not in (UNATTRIBUTED, RLPROF)}
    # Operations that only ran on other lanes have no time here. They would be in the legend but not in the chart.
    by_size = sorted((name for name in totals if totals[name] > 0), key=lambda name: -totals[name])
    shown, rest = by_size[:_MOST_AREAS], by_size[_MOST_AREAS:]
    order = {portion.name: place for place, portion in enumerate(report.facts.breakdown.categories)}
    named = [(category_of.get(name, "other"), name) for name in shown]
    named.sort(key=lambda entry: (order.get(entry[0], len(order)), -totals[entry[1]]))
    areas = [(plain_name(name), category, series.ledger_ns[name]) for category, name in named]
    if rest:
        summed = tuple(sum(values) for values in zip(*(series.ledger_ns[name] for name in rest)))
        areas.append((OTHER, "remaining", summed))
    areas += [(name, name, series.ledger_ns[name]) for name in (UNATTRIBUTED, RLPROF) if any(series.ledger_ns[name])]
    return {
        "first": series.first,
        "last": series.last,
        "wall": series.wall_ns,
        "steps": series.steps,
        # A value may be slightly negative if a span was corrected afterwards; an area cannot be.
        "areas": [
            {"name": name, "category": category, "ns": [max(0, ns) for ns in values]}
            for name, category, values in areas
        ],
    }


def _distributions(report: Report) -> list[dict[str, Any]]:
    """Histograms as flat lists: bucket, calls, bucket, calls. As many as fit, the largest first."""
    room = _MOST_BUCKETS
    found = []
    for operation in report.facts.operations:
        if not operation.calls or len(operation.histogram) > room:
            continue
        buckets = [(bucket, calls) for bucket, calls in sorted(operation.histogram.items()) if calls > 0]
        room -= len(buckets)
        if not buckets:
            continue
        marks = {"p50": operation.p50_ns, "p95": operation.p95_ns, "p99": operation.p99_ns}
        found.append(
            {
                "name": plain_name(operation.operation),
                "category": operation.category,
                "calls": operation.calls,
                "buckets": [number for pair in buckets for number in pair],
                "marks": {mark: ns for mark, ns in marks.items() if ns},
            }
        )
    return found


def _resources(report: Report) -> dict[str, Any] | None:
    samples = report.facts.resources.samples
    if not samples.time_ns:
        return None
    columns = {field.name: _rounded(getattr(samples, field.name)) for field in fields(samples)}
    if not report.facts.resources.children_most:
        columns["children_cpu"] = columns["children_rss"] = []
    return columns


def _rounded(column: Sequence[float | None]) -> list[float | None]:
    """Rounded to three decimals. Values that are not finite count as not measured."""
    return [None if value is None or not math.isfinite(value) else round(value, 3) for value in column]

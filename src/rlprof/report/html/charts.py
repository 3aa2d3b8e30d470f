"""Data for the charts of the HTML report: of a bounded size, with every name ready to be shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from rlprof.analysis.breakdown import RLPROF, UNATTRIBUTED, Row
from rlprof.analysis.figures import duration, many, percent
from rlprof.analysis.report import Report
from rlprof.render.html.markup import plain_name

_MOST_PLACES = 600
"""Most places of the call tree. More would be thinner than a pixel and take the browser seconds."""
_MOST_AREAS = 10
_MOST_BUCKETS = 60_000
"""Most buckets of all histograms together: half a megabyte."""
OTHER = "all other operations"


def chart_data(report: Report) -> dict[str, Any]:
    return {
        "icicle": _icicle(report),
        "ledger": _ledger(report),
        "distributions": _distributions(report),
        "resources": _resources(report),
    }


def _icicle(report: Report) -> dict[str, Any] | None:
    whole = report.facts.breakdown
    if not whole.wall_ns:
        return None
    # A place is never larger than its parent and the sort is stable, so the parents of a kept place are kept too.
    by_size = sorted(range(len(whole.rows)), key=lambda place: -whole.rows[place].subtree_ledger_ns)
    kept = sorted(place for place in by_size[:_MOST_PLACES] if whole.rows[place].subtree_ledger_ns > 0)
    total = duration(whole.wall_ns)
    places: list[tuple[Any, ...]] = [("wall time", "", -1, whole.wall_ns, total, f"{total} in total")]
    path: list[int] = []
    for place in kept:
        row = whole.rows[place]
        del path[row.depth :]
        parent, share = path[-1] if path else 0, percent(row.share)
        path.append(len(places))
        places.append((plain_name(row.operation), row.category, parent, row.subtree_ledger_ns, share, _hover(row)))
    columns = ("names", "categories", "parents", "values", "texts", "hovers")
    hidden = sum(row.subtree_ledger_ns > 0 for row in whole.rows) - len(kept)
    return {**dict(zip(columns, map(list, zip(*places)))), "hidden": hidden}


def _hover(row: Row) -> str:
    lines = [f"{percent(row.share)} of the wall time: {duration(row.subtree_ledger_ns)}"]
    if row.ledger_ns != row.subtree_ledger_ns:
        lines.append(f"own time: {duration(row.ledger_ns)}")
    if row.calls and row.mean_ns is not None:
        lines.append(f"{many(row.calls, 'call')}, {duration(row.mean_ns)} on average")
    if row.p50_ns is not None and row.p95_ns is not None:
        lines.append(f"p50 {duration(row.p50_ns)}, p95 {duration(row.p95_ns)}")
    if row.subtree_cpu_ns is not None and row.wall_ns:
        lines.append(f"CPU {100 * row.subtree_cpu_ns / row.wall_ns:.0f}%")
    if row.overlapped_ns:
        lines.append(f"overlapped: {duration(row.overlapped_ns)}")
    return "\n".join(lines)


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

"""A comparison as one HTML page: the verdict, a forest plot of the components, the differences between the arms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rlprof.analysis.comparison import Comparison
from rlprof.analysis.figures import duration, many, rate
from rlprof.analysis.inference import Interval
from rlprof.compare.forest import Scale
from rlprof.compare.text import NO_EVIDENCE, basis, legend, notes, speedup_of, time_of, verdict, verdict_of
from rlprof.render.html.markup import Markup, element, figures, join, plain_name, prose
from rlprof.render.html.plain import page
from rlprof.render.intervals import percent_of, range_of, shown

_MOST_ROWS = 60
"""Further components share one row."""


def to_html(comparison: Comparison, above: Markup | None = None) -> str:
    """The page. `above` is what a website puts on top of it."""
    warnings = (element("p", note, class_="warning") for note in notes(comparison))
    computed = (element("p", sentence) for sentence in (basis(comparison), legend(comparison)))
    body = [
        element("section", element("h2", verdict(comparison)), _figures(comparison), *warnings, class_="compared"),
        element("section", element("h2", "Where the difference is"), _forest(comparison)),
        element("section", element("h2", "What this is computed from"), *computed),
    ]
    if comparison.changes:
        changes = element("ul", *(element("li", prose(change)) for change in comparison.changes))
        body.append(element("section", element("h2", "What differs between A and B"), changes))
    return page("rlprof compare", "Is B faster than A?", join(body), above=above)


def _figures(comparison: Comparison) -> Markup:
    unit = "steps" if comparison.per_step else "iterations"
    items = [
        ("A", f"{rate(1e9 / comparison.a_ns)} {unit}/s", prose(comparison.a)),
        ("B", f"{rate(1e9 / comparison.b_ns)} {unit}/s", prose(comparison.b)),
    ]
    if not comparison.withheld:
        items.append(_large("B is faster by", comparison.speedup))
        if comparison.cpu is not None:
            items.append(_large("by CPU time", comparison.cpu))
    return figures(items)


def _large(what: str, interval: Interval) -> tuple[str, str, str]:
    """The interval is in small type: a narrow page has no room for both in large type. Without an interval, or
    with zero in it, there is no estimate, because that would be read as the result."""
    if interval.beyond_zero:
        return what, percent_of(interval.estimate), range_of(interval)
    return what, "no evidence", "" if interval.low is None else f"{range_of(interval)}%"


def _forest(comparison: Comparison) -> Markup:
    if comparison.withheld:
        return _times(comparison)
    drawn, rest = comparison.components[:_MOST_ROWS], comparison.components[_MOST_ROWS:]
    scale = Scale(comparison)
    saved = sum(one.contribution for one in comparison.components)
    sure = comparison.speedup.beyond_zero or comparison.speedup.low is None
    speedup = shown(comparison.speedup) if sure else range_of(comparison.speedup)
    line = scale.line(comparison.speedup, sure)
    word = {"unknown": NO_EVIDENCE}.get(comparison.verdict, comparison.verdict)
    a, b = duration(comparison.a_ns), duration(comparison.b_ns)
    rows = [("all of it", speedup, word, line, _saved(saved) if sure else "", a, b)]
    rows += [
        (
            plain_name(one.name),
            speedup_of(one),
            verdict_of(one),
            Markup() if one.speedup is None else scale.line(one.speedup, one.significant),
            _saved(one.contribution),
            time_of(one, one.a_ns),
            time_of(one, one.b_ns),
        )
        for one in drawn
    ]
    if rest:
        saved_there = _saved(sum(one.contribution for one in rest))
        rows.append((f"{many(len(rest), 'component')} more", "", "", Markup(), saved_there, "", ""))
    headers = ("component", "B is faster by", "verdict", scale.axis(), "saved", "A", "B")
    caption = "Time by component, how much faster B is in it (on a log scale), and the part of A's time that this saves"
    return _table(caption, headers, rows)


def _table(caption: str, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    """On a narrow page each row is a block, with the header of each cell above it: see .forest in page.css."""
    head = element("tr", *(element("th", header, scope="col") for header in headers))
    body = (
        element(
            "tr",
            element("th", name, scope="row"),
            *_cells(headers[1:], cells),
            class_="unclear" if NO_EVIDENCE in cells else None,
        )
        for name, *cells in rows
    )
    return element(
        "table", element("caption", caption), element("thead", head), element("tbody", *body), class_="forest"
    )


def _cells(headers: Sequence[str], cells: Sequence[str]) -> Iterator[Markup]:
    for header, cell in zip(headers, cells):
        plot = isinstance(header, Markup)
        yield element("td", cell, class_="plot" if plot else None, data_label=None if plot else header)


def _times(comparison: Comparison) -> Markup:
    """Times only: arms that do different work have no speedups."""
    rows = [("all of it", duration(comparison.a_ns), duration(comparison.b_ns))]
    drawn = comparison.components[:_MOST_ROWS]
    rows += [(plain_name(one.name), time_of(one, one.a_ns), time_of(one, one.b_ns)) for one in drawn]
    return _table("Time by component", ("component", "A", "B"), rows)


def _saved(contribution: float) -> str:
    return f"{100 * contribution:+.1f}%"

"""The user's code by line: which lines the own time of each operation comes from."""

from __future__ import annotations

from collections.abc import Iterator

from rlprof.analysis.breakdown import UNATTRIBUTED
from rlprof.analysis.code import Line
from rlprof.analysis.figures import as_percent, duration
from rlprof.analysis.report import Report
from rlprof.render.html.markup import Markup, bar, element, join, plain_name, prose, swatch
from rlprof.render.names import short_path
from rlprof.report.tree import OWN_CODE

_MOST_LINES = 10
"""Of one operation."""
_MOST_ROWS = 300
NOT_SAMPLED = (
    "The Python stack was not sampled in this run, so the lines and functions that the time comes from are not known."
)
_HEADERS = ("line", "share", "time", "", "function", "source")


def lines(report: Report) -> Markup:
    """One group of rows per operation, the largest first."""
    code = report.facts.code
    if not any(code.lines.values()):
        return Markup()
    names = [item.operation for item in report.facts.operations if code.within(item.operation)]
    names += [UNATTRIBUTED] if code.within(UNATTRIBUTED) else []
    names.sort(key=lambda name: -sum(line.ns for line in code.within(name)))
    category_of = {operation.operation: operation.category for operation in report.facts.operations}
    head = element("tr", *(element("th", header, scope="col") for header in _HEADERS))
    groups, room = [], _MOST_ROWS
    for name in names:
        shown = code.within(name)[: min(room, _MOST_LINES)]
        room -= len(shown)
        if shown:
            groups.append(_group(name, category_of.get(name, UNATTRIBUTED), shown))
    caption = "Your code, by line. Share: part of the operation's own time, which leaves out the operations it calls."
    whole = element("table", element("caption", caption), element("thead", head), *groups, id="lines-table")
    return element("div", whole, class_="scroll lines", tabindex="0", role="region", aria_label="Your code, by line")


def _group(name: str, category: str, lines: tuple[Line, ...]) -> Markup:
    shown = OWN_CODE if name == UNATTRIBUTED else plain_name(name)
    title = element(
        "tr", element("th", swatch(category), shown, scope="rowgroup", colspan=len(_HEADERS)), class_="group"
    )
    return element("tbody", title, *(element("tr", *_cells(line, category)) for line in lines), data_name=shown)


def _cells(line: Line, category: str) -> Iterator[Markup]:
    yield element("th", short_path(prose(line.where)), scope="row", title=prose(line.where))
    yield element("td", as_percent(line.share))
    yield element("td", duration(line.ns))
    yield element("td", bar(100 * line.share, category))
    yield element("td", plain_name(line.function))
    below = f"calls {' > '.join(line.below)}" if line.below else None
    yield element("td", element("code", prose(line.source)), title=prose(below) if below else None)


def functions(report: Report) -> Markup:
    """A sentence in place of the flame graph if there is nothing to draw."""
    if report.facts.code.calls:
        return join([])
    return element("p", NOT_SAMPLED, class_="empty")

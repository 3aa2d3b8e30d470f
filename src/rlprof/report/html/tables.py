"""The tables of the HTML report. They need no script; with it, they can be searched, and the operations sorted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from rlprof.analysis.breakdown import RLPROF, UNATTRIBUTED, Row
from rlprof.analysis.figures import count, duration, if_known, many, percent, size
from rlprof.analysis.operations import Operation
from rlprof.analysis.report import Report
from rlprof.analysis.rollout import Step
from rlprof.render.html.markup import Markup, bar_row, element, join, plain_name, short_name, swatch, table, word_of
from rlprof.report.html.shares import own_shares

MOST_OPERATIONS = 1_000
_MOST_TREE_ROWS = 400
_MOST_STEPS = 80
_DEEPEST_INDENT = 12
_LONGEST_PLACE = 34

_Column = tuple[str, str, Callable[[Operation], float | None], Callable[[float], str]]
_COLUMNS: tuple[_Column, ...] = (
    ("share", "Share of the training time, without what it calls", lambda operation: operation.share, percent),
    ("time", "Training time that the operation itself accounts for", lambda operation: operation.ledger_ns, duration),
    ("calls", "Calls", lambda operation: operation.calls, lambda calls: count(int(calls))),
    ("total", "All calls on all lanes, including what they called", lambda operation: operation.busy_ns, duration),
    ("mean", "Mean duration of a call", lambda operation: operation.mean_ns, duration),
    ("p50", "Half of the calls were shorter", lambda operation: operation.p50_ns, duration),
    ("p95", "95 of 100 calls were shorter", lambda operation: operation.p95_ns, duration),
    ("p99", "99 of 100 calls were shorter", lambda operation: operation.p99_ns, duration),
    ("min", "The shortest call", lambda operation: operation.min_ns, duration),
    ("max", "The longest call", lambda operation: operation.max_ns, duration),
    ("CPU", "Part of its own time spent computing", lambda operation: operation.cpu_percent, "{:.0f}%".format),
    ("mem peak", "Peak resident memory of the process during a call", lambda operation: operation.memory_peak, size),
    ("mem rise", "The most memory a call needed above its start", lambda operation: operation.memory_rise, size),
    ("GPU peak", "Peak device memory during a call", lambda operation: operation.device_peak, size),
    ("GPU time", "Time on the device", lambda item: item.device_ns if item.device_calls else None, duration),
)
_SHOW = "Show the durations of its calls"
_OPTIONAL = {"mem peak", "mem rise", "GPU peak", "GPU time", "CPU"}
"""Columns that are left out if nothing was measured."""


def operations(report: Report) -> Markup:
    """Every operation in a table, with `unattributed` and `rlprof` below, so that the shares sum to 100."""
    recorded = [operation for operation in report.facts.operations if operation.calls or operation.ledger_ns]
    shown = recorded[:MOST_OPERATIONS]
    if not shown:
        return element("p", "No operation was recorded.", class_="empty")
    empty = {name for name, _, value, _ in _COLUMNS if all(value(operation) is None for operation in shown)}
    columns = [column for column in _COLUMNS if column[0] not in _OPTIONAL & empty]
    headings = (_heading(name, what, "number") for name, what, _, _ in columns)
    head = element("tr", _heading("operation", "Name", "text"), *headings)
    foot = []
    for row in report.facts.breakdown.rows[-2:]:
        first = element("th", swatch(row.category), row.operation, scope="row")
        cells = (percent(row.share), duration(row.ledger_ns), *[""] * (len(columns) - 2))
        foot.append(element("tr", first, *(element("td", cell) for cell in cells)))
    shares = own_shares(report)
    body = join(_operation_row(operation, columns, shares[operation.operation]) for operation in shown)
    whole = element(
        "table",
        element("caption", "All operations, summed over lanes and places"),
        element("thead", head),
        element("tbody", body),
        element("tfoot", *foot),
        id="operations-table",
    )
    parts = [element("div", whole, class_="scroll tall", tabindex="0", role="region", aria_label="Operations")]
    if hidden := len(recorded) - len(shown):
        parts.append(element("p", f"{hidden:,} smaller operations are not shown: see the CSV report.", class_="hint"))
    return join(parts)


def _heading(name: str, what: str, kind: str) -> Markup:
    button = element("button", name, type="button", title=what, data_kind=kind)
    return element("th", button, scope="col", aria_sort="descending" if name == "time" else "none")


def _operation_row(operation: Operation, columns: Sequence[_Column], share: float) -> Markup:
    # Written directly: thousands of rows with fifteen elements each would dominate the time to build the page.
    cells = []
    for name, _, value, shown in columns:
        figure = share if name == "share" else value(operation)
        cells.append("<td></td>" if figure is None else f'<td data-v="{figure:.10g}">{shown(figure)}</td>')
    button = element("button", plain_name(operation.operation), type="button", class_="link", title=_SHOW)
    first = element("th", swatch(operation.category), button, scope="row")
    return Markup(f'<tr data-category="{word_of(operation.category)}">{first}{"".join(cells)}</tr>')


def categories(report: Report) -> Markup:
    whole = report.facts.breakdown
    if not whole.wall_ns:
        return element("p", "No time was recorded.", class_="empty")
    rows = [
        bar_row(item.name, (percent(item.share), duration(item.ledger_ns)), item.share, item.name)
        for item in whole.categories
        if item.ledger_ns or item.name in (UNATTRIBUTED, RLPROF)
    ]
    return table("Training time by kind of work", ("category", "share", "time", ""), rows, "bars")


def call_tree(report: Report) -> Markup:
    *operations, unattributed, rlprof = report.facts.breakdown.rows
    rows = [*(row for row in operations if row.calls or row.subtree_ledger_ns), unattributed, rlprof]
    least = _threshold([row.subtree_ledger_ns for row in rows], _MOST_TREE_ROWS)
    shown = [row for row in rows if row.subtree_ledger_ns >= least][:_MOST_TREE_ROWS]
    headers = ("operation", "share", "time", "own time", "calls", "mean", "p95")
    parts = [element("summary", "The same as a table"), table("The call tree", headers, map(_tree_row, shown))]
    if hidden := len(rows) - len(shown):
        parts.append(element("p", f"Not shown: {many(hidden, 'smaller place')}.", class_="hint"))
    return element("details", *parts)


def _tree_row(row: Row) -> Sequence[str]:
    return (
        _indented(row.depth, join([swatch(row.category), element("span", short_name(row.operation, _LONGEST_PLACE))])),
        percent(row.share),
        duration(row.subtree_ledger_ns),
        duration(row.ledger_ns),
        count(row.calls) if row.calls else "",
        if_known(duration, row.mean_ns),
        if_known(duration, row.p95_ns),
    )


def _threshold(sizes: Iterable[float], most: int) -> float:
    largest = sorted(sizes, reverse=True)
    return largest[most - 1] if len(largest) > most else float("-inf")


def _indented(depth: int, name: str) -> Markup:
    level = min(depth, _DEEPEST_INDENT)
    deeper = element("span", f"(level {depth + 1}) ", class_="deeper") if depth > _DEEPEST_INDENT else None
    return element("span", deeper, name, class_="level", style=f"--level:{level}")


def rollout(report: Report) -> Markup:
    tree = report.findings.rollout
    if tree is None:
        return element("p", "No rollout was found. It needs iterations and an environment.", class_="empty")
    steps = [Step("rollout", -1, tree.total_ns, False), *tree.steps]
    least = max(tree.total_ns / 1000, _threshold([step.ns for step in steps], _MOST_STEPS))
    shown = [step for step in steps if step.ns >= least or step.bottleneck][: _MOST_STEPS + 1]
    caption = f"Mean of {many(tree.rollouts, 'rollout')}"
    rows = [_step_row(step, tree.total_ns) for step in shown]
    return table(caption, ("operation", "time", "share", ""), rows, "bars")


def _step_row(step: Step, total: float) -> Sequence[str]:
    share = 100 * step.ns / total if total else 0.0
    mark = element("span", "bottleneck", class_="badge warn") if step.bottleneck else ""
    name = _indented(step.depth + 1, join([short_name(step.operation, _LONGEST_PLACE), " ", mark]))
    return bar_row(name, (duration(step.ns), percent(share)), share)

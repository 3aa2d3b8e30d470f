"""Data for the two charts of nested boxes: the call tree, and the user's functions inside an operation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rlprof.analysis.advice.lines import shortened
from rlprof.analysis.breakdown import UNATTRIBUTED, Row
from rlprof.analysis.code import Call, Line
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, duration, many, percent
from rlprof.ledger.catalogue import PHASES
from rlprof.render.html.markup import plain_name, prose
from rlprof.render.names import outside_name, short_path
from rlprof.report.tree import ENOUGH_NS, OWN_CODE, function_of_framework, own_code

_MOST_PLACES = 600
"""Most places of the call tree. More would be thinner than a pixel and take the browser seconds."""
_MOST_FUNCTIONS = 150
"""Most functions of one operation."""


@dataclass(slots=True)
class _Boxes:
    """Columns of equal length, one entry per box. A box comes after the one that it lies in."""

    names: list[str] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    """The figure beside the name."""
    lines: list[str] = field(default_factory=list)
    """The hottest line of code, if known."""
    hovers: list[str] = field(default_factory=list)

    def add(
        self, name: str, category: str, parent: int, value: float, text: str, line: str = "", hover: Sequence[str] = ()
    ) -> int:
        entry = (plain_name(name), category, parent, round(value), text, plain_name(line) if line else "")
        columns = (self.names, self.categories, self.parents, self.values, self.texts, self.lines)
        for column, one in zip(columns, entry):
            column.append(one)  # type: ignore[attr-defined]
        self.hovers.append("\n".join(prose(one) for one in hover))
        return len(self.names) - 1

    def columns(self) -> dict[str, Any]:
        names = ("names", "categories", "parents", "values", "texts", "lines", "hovers")
        return {name: getattr(self, name) for name in names}


def tree_boxes(facts: Facts) -> dict[str, Any] | None:
    """The whole run, in it the training and what lies outside of it, in the training the call tree."""
    whole = facts.breakdown
    if not whole.wall_ns:
        return None
    boxes = _Boxes()
    run = boxes.add("whole run", "", -1, whole.wall_ns, duration(whole.wall_ns))
    training = boxes.add("training", "", run, whole.training_ns, duration(whole.training_ns))
    # A place is never larger than its parent and the sort is stable, so the parents of a kept place are kept too.
    by_size = sorted(range(len(whole.rows)), key=lambda place: -whole.rows[place].subtree_ledger_ns)
    kept = sorted(place for place in by_size[:_MOST_PLACES] if whole.rows[place].subtree_ledger_ns > 0)
    path: list[int] = []
    names: list[str] = []
    for place in kept:
        row = whole.rows[place]
        del path[row.depth :]
        names[row.depth :] = [row.operation]
        parent = path[-1] if path else training
        holds = place + 1 < len(whole.rows) and whole.rows[place + 1].depth > row.depth
        name = OWN_CODE if row.category == UNATTRIBUTED else row.operation
        lines = facts.code.at(names, on_driver=not row.elsewhere)
        hot = [] if holds else lines
        box = boxes.add(
            name, row.category, parent, row.subtree_ledger_ns, percent(row.share), _where(hot), _row_hover(row, hot)
        )
        path.append(box)
        if holds and row.ledger_ns > 0:
            _add_own(boxes, facts, row, lines, box)
    for part in whole.outside:
        boxes.add(
            outside_name(part.name),
            "outside",
            run,
            part.ns,
            duration(part.ns),
            hover=["outside of the training, in no share"],
        )
    hidden = sum(row.subtree_ledger_ns > 0 for row in whole.rows) - len(kept)
    start = training if whole.training_ns else run
    return {**boxes.columns(), "start": start, "outside": bool(whole.outside), "hidden": hidden}


def _add_own(boxes: _Boxes, facts: Facts, row: Row, hot: Sequence[Line], parent: int) -> None:
    """The own time of a row that has others below it: code between the operations that it contains."""
    share = row.ledger_ns / facts.breakdown.training_ns
    name = own_code(facts, row.operation) if row.operation in PHASES else f"{row.operation} itself"
    hover = [f"{as_percent(share)} of the training time: {duration(row.ledger_ns)}", *_hot(hot)]
    if not hot:
        hover.append("between the operations that are named")
    boxes.add(name, row.category, parent, row.ledger_ns, as_percent(share), _where(hot), hover)


def _where(lines: Sequence[Line]) -> str:
    """The hottest line, as in the text report."""
    if not lines or lines[0].ns < ENOUGH_NS:
        return ""
    inside = function_of_framework(lines[0])
    return inside or f"{short_path(lines[0].where)} {shortened(lines[0].source)}".strip()


def _hot(lines: Sequence[Line]) -> list[str]:
    return [f"{as_percent(line.share)} in {line.where} {shortened(line.source)}".strip() for line in lines[:3]]


def _row_hover(row: Row, hot: Sequence[Line]) -> list[str]:
    lines = [f"{percent(row.share)} of the training time: {duration(row.subtree_ledger_ns)}"]
    if row.ledger_ns != row.subtree_ledger_ns:
        lines.append(f"own time, without what it calls: {duration(row.ledger_ns)}")
    if row.calls and row.mean_ns is not None:
        lines.append(f"{many(row.calls, 'call')}, {duration(row.mean_ns)} on average")
    if row.p50_ns is not None and row.p95_ns is not None:
        lines.append(f"half of the calls below {duration(row.p50_ns)}, 95% below {duration(row.p95_ns)}")
    if row.subtree_cpu_ns is not None and row.wall_ns:
        lines.append(f"computing for {100 * row.subtree_cpu_ns / row.wall_ns:.0f}% of its time")
    if row.overlapped_ns:
        lines.append(f"beside other work of the driver: {duration(row.overlapped_ns)}")
    return [*lines, *_hot(hot)]


def function_boxes(facts: Facts) -> list[dict[str, Any]]:
    """The flame graph of every operation whose stacks were sampled, largest first."""
    categories = {operation.operation: operation.category for operation in facts.operations}
    totals = {name: sum(call.ns for call in calls) for name, calls in facts.code.calls.items()}
    found = []
    for name in sorted((name for name in totals if totals[name] > 0), key=lambda name: -totals[name]):
        category = categories.get(name, UNATTRIBUTED if name == UNATTRIBUTED else "other")
        shown = OWN_CODE if name == UNATTRIBUTED else plain_name(name)
        found.append({"operation": plain_name(name), "name": shown, **_functions(facts, name, category)})
    return found


def _functions(facts: Facts, operation: str, category: str) -> dict[str, Any]:
    calls = facts.code.calls[operation][:_MOST_FUNCTIONS]
    whole = sum(call.ns for call in calls)
    skipped = _common(calls)
    total: defaultdict[tuple[str, ...], float] = defaultdict(float)
    own: defaultdict[tuple[str, ...], float] = defaultdict(float)
    for call in calls:
        path = call.path[skipped:]
        own[path] += call.ns
        for depth in range(1, len(path) + 1):
            total[path[:depth]] += call.ns
    boxes = _Boxes()
    places: dict[tuple[str, ...], int] = {(): boxes.add(f"own time of {operation}", "", -1, whole, duration(whole))}
    holds = {path[:-1] for path in total}

    def rank(path: tuple[str, ...]) -> list[tuple[float, str]]:
        """Parents first, then the largest."""
        return [(-total[path[: depth + 1]], name) for depth, name in enumerate(path)]

    for path in sorted(total, key=rank):
        hot = _in_function(facts, operation, path[-1])
        name = _label(path[-1])
        figures = [_part(total[path], whole), path[-1]]
        leaf = path not in holds
        places[path] = boxes.add(
            name, category, places[path[:-1]], total[path], as_percent(total[path] / whole),
            _where(hot) if leaf else "", [*figures, *(_hot(hot) if leaf else ())],
        )  # fmt: skip
        if not leaf and own[path] > 0:
            hover = [_part(own[path], whole), "without the functions of yours that it calls", *_hot(hot)]
            share = as_percent(own[path] / whole)
            boxes.add(f"{name} itself", category, places[path], own[path], share, _where(hot), hover)
    return {**boxes.columns(), "start": 0, "outside": False, "hidden": len(facts.code.calls[operation]) - len(calls)}


def _common(calls: Sequence[Call]) -> int:
    """How many outermost functions all calls share, but one: they say nothing about where the time goes."""
    shortest = min(len(call.path) for call in calls)
    different = (depth for depth in range(shortest) if len({call.path[depth] for call in calls}) > 1)
    return max(0, next(different, shortest) - 1)


def _part(ns: float, whole: float) -> str:
    return f"{as_percent(ns / whole)} of the operation's own time: {duration(ns)}"


def _label(function: str) -> str:
    file, _, name = function.rpartition(":")
    return f"{name} ({file.rpartition('/')[2]})" if file else name


def _in_function(facts: Facts, operation: str, function: str) -> list[Line]:
    return [line for line in facts.code.within(operation) if f"{line.file}:{line.function}" == function]

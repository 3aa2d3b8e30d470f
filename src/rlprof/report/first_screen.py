"""The first screen of a report: how fast, where the time goes, what to change. At most 30 lines of 100 columns."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from rlprof.analysis.advice.check import changed_copy
from rlprof.analysis.advice.finding import Finding
from rlprof.analysis.code import Line
from rlprof.analysis.figures import duration, percent
from rlprof.analysis.report import Report
from rlprof.render.layout import as_text
from rlprof.render.names import literal, shorten
from rlprof.report.answer import (
    around,
    gain_text,
    headline,
    incomplete,
    no_cause,
    origin,
    speed,
    trained,
)
from rlprof.report.tree import NEARLY_ALL, function_of_framework, tree_rows

MOST_LINES = 30
WIDEST = 100
FIGURES = 17
"""Width of the columns with figures."""
WIDE = 80
"""Least width for the column of lines."""
SIZES = ((3, 14, 5), (3, 11, 4), (2, 12, 5), (2, 9, 4), (2, 7, 3), (1, 8, 4), (1, 5, 2))
"""Findings, rows of the tree and lines of a change, from the richest screen to the shortest."""
_INDENT = 2


def render(report: Report, console: Console) -> None:
    for text in lines(report, min(console.width, WIDEST), console.options.ascii_only):
        console.print(text, soft_wrap=True)


to_text = as_text(render)


def render_top(report: Report, console: Console) -> None:
    """Only how fast the training is: the whole report has everything else in more detail."""
    for text in _Screen(report, min(console.width, WIDEST), console.options.ascii_only).top():
        console.print(text, soft_wrap=True)


def lines(report: Report, width: int = WIDEST, ascii_only: bool = False) -> list[Text]:
    """The richest screen that fits."""
    screens = (_Screen(report, width, ascii_only).compose(*size) for size in SIZES)
    shown: list[Text] = []
    for shown in screens:
        if len(shown) <= MOST_LINES:
            break
    for text in shown:
        if not text.no_wrap:
            text.truncate(width)  # figures that no measurement has may be longer than their columns
    return shown[:MOST_LINES]


class _Screen:
    def __init__(self, report: Report, width: int, ascii_only: bool) -> None:
        self._report = report
        self._facts = report.facts
        self._width = width
        self._ascii = ascii_only
        self._lines: list[Text] = []

    def top(self) -> list[Text]:
        self._add(origin(self._report), "dim")
        if missing := incomplete(self._report):
            self._add(missing, "bold red")
        self._add(speed(self._facts), "bold")
        if trained(self._facts):
            if apart := around(self._facts):
                self._add(apart)
            for note in self._report.findings.notes:
                self._add(f"Note: {note.text}", "yellow")
        return self._lines

    def compose(self, findings: int, rows: int, changes: int) -> list[Text]:
        self.top()
        if not trained(self._facts):
            return self._lines
        self._lines.append(Text())
        self._tree(rows)
        self._lines.append(Text())
        self._findings(findings, changes)
        self._lines.append(Text())
        self._add("More: rlprof report --full, rlprof report --html report.html", "dim")
        return self._lines

    def _findings(self, most: int, changes: int) -> None:
        found = self._report.findings.findings
        if not found:
            self._add(no_cause(self._facts), "bold")
            return
        checks = list(dict.fromkeys(finding.check for finding in found[:most]))
        for number, finding in enumerate(found[:most], 1):
            self._finding(number, finding, changes)
            if len(checks) > 1:
                self._check(finding.check, 3)
        if len(checks) == 1:
            self._check(checks[0], 0)
        if len(found) > most:
            self._add(f"{len(found) - most} more in --full.", "dim")

    def _finding(self, number: int, finding: Finding, changes: int) -> None:
        gain = gain_text(finding)
        self._add(f"{number}. {headline(finding)}{f' Expected: {gain}.' if gain else ''}", "bold", hanging=3)
        if finding.place is not None and finding.place.source:
            self._code(finding.place.source)
        self._add(f"Change: {finding.change}", indent=3, most=changes)

    def _code(self, source: str) -> None:
        """The text of the line, which the headline only describes."""
        shown = f"   Code: {literal(' '.join(source.split()), self._ascii)}"
        shown = shown if cell_len(shown) <= self._width else _cut(shown, self._width, self._ascii)
        self._lines.append(Text(shown, style="cyan"))

    def _check(self, check: str, indent: int) -> None:
        if copy := changed_copy(check):
            self._add(f"Check: make the change in a copy, {copy}, and run", indent=indent)
            self._add_command(" " * (indent + 3) + check)
        elif check.startswith("rlprof "):
            self._add_command(" " * indent + f"Check: {check}")
        else:
            self._add(f"Check: {check}", indent=indent)

    def _add_command(self, text: str) -> None:
        """A line that can be copied whole, however long it is."""
        self._lines.append(Text(literal(text, self._ascii), no_wrap=True))

    def _tree(self, most: int) -> None:
        rows = tree_rows(self._facts, most)
        names = [" " * (_INDENT * row.depth) + literal(row.name, self._ascii) for row in rows]
        wide = self._width >= WIDE and any(row.line for row in rows if row.is_own)
        slowest = "  slowest line" if wide else ""
        widest = min(max(map(cell_len, names), default=0), max(16, self._width - (40 if wide else FIGURES)))
        self._lines.append(Text(f"{'Part of training':<{widest}}   share     time{slowest}", style="bold"))
        for row, name in zip(rows, names):
            shown = shorten(name, widest, "..." if self._ascii else "…")
            shown += " " * (widest - cell_len(shown))
            figures = f"{shown}  {percent(row.share):>6}  {duration(row.ns):>7}"
            remark = (
                self._remark(row.line, self._width - cell_len(figures) - 2) if wide and row.is_own and row.line else ""
            )
            self._lines.append(Text(f"{figures}  ") + Text(remark, style="cyan") if remark else Text(figures))

    def _remark(self, line: Line, room: int) -> str:
        """The place, the text and the share of a line, as far as there is room."""
        part = f" ({100 * line.share:.0f}% of it)" if line.share < NEARLY_ALL else ""
        where, ellipsis = literal(line.where, self._ascii), "..." if self._ascii else "…"
        if (inside := function_of_framework(line)) is not None:
            # The line is the same in all rows. Its share is that of all functions of the framework together.
            return shorten(literal(inside, self._ascii), room, ellipsis) if room > 12 else ""
        left = room - cell_len(where) - cell_len(part) - 3
        source = f" `{shorten(literal(line.source, self._ascii), left, ellipsis)}`" if line.source and left > 8 else ""
        shown = f"{where}{source}{part}"
        return shorten(shown, room, ellipsis) if room > 12 else ""

    def _add(self, text: str, style: str = "", indent: int = 0, most: int = 0, hanging: int = 0) -> None:
        """A paragraph with at most `most` lines. The later lines of a `hanging` one are indented."""
        console = Console(width=self._width, color_system=None)
        wrapped = Text(literal(text, self._ascii)).wrap(console, max(20, self._width - max(indent, hanging)))
        shown = [line.plain.rstrip() for line in wrapped]
        if most and len(shown) > most:
            shown = [*shown[: most - 1], _cut(" ".join(shown[most - 1 :]), self._width - indent, self._ascii)]
        for place, line in enumerate(shown):
            self._lines.append(Text(" " * (indent or (hanging if place else 0)) + line, style=style))


def _cut(text: str, width: int, ascii_only: bool) -> str:
    """The beginning of a sentence that is too long."""
    ellipsis = "..." if ascii_only else "…"
    return set_cell_size(text, width - len(ellipsis)).rstrip() + ellipsis

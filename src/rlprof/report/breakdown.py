"""The breakdown as text for a terminal or a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rlprof.analysis.breakdown import RLPROF, Breakdown, Row
from rlprof.analysis.figures import count, duration, if_known, many, percent
from rlprof.render.layout import GAP, WIDEST, Column, as_text, fitting, room
from rlprof.render.names import literal, outside_name, shorten

NO_CPU_TIME = "CPU time was not measured: this machine has no cheap way to read it."
CPU_TIME_UNFIT = (
    "The CPU time in spans exceeds what the cores could provide during the training, because some of it is "
    "from before. So it is not known what the cores were used for."
)
_BAR_WIDTHS = (6, 30)
_NAME_WIDTHS = (22, 40)
_FEW_ROWS = 30
"""Up to this many rows are all shown. Of more rows, only the larger ones."""
_LEAST_SHARE = 0.05
_DEEPEST = 9
_INDENT = 2


def _cpu_percent(row: Row) -> str:
    if row.subtree_cpu_ns is None or not row.wall_ns:
        return ""
    return f"{100 * row.subtree_cpu_ns / row.wall_ns:.0f}%"


_SHARE: Column[Row] = Column("share", 6, lambda row: percent(row.share))
_TIME: Column[Row] = Column("time", 7, lambda row: duration(row.subtree_ledger_ns))
_CPU: Column[Row] = Column("CPU", 4, _cpu_percent, 3)
_FIGURES: tuple[Column[Row], ...] = (
    _SHARE,
    _TIME,
    Column("calls", 7, lambda row: count(row.calls) if row.calls else "", 2),
    Column("mean", 7, lambda row: if_known(duration, row.mean_ns), 1),
    Column("p95", 7, lambda row: if_known(duration, row.p95_ns), 4),
    _CPU,
)


def render(breakdown: Breakdown, console: Console) -> None:
    """Headline, call tree, categories, and notes on the figures."""
    page = _Page(breakdown, console)
    console.print(page.headline())
    if breakdown.wall_ns:
        console.print()
        render_parts(breakdown, console)


to_text = as_text(render)


def render_parts(breakdown: Breakdown, console: Console) -> None:
    """Without the headline."""
    page = _Page(breakdown, console)
    console.print(page.tree())
    console.print()
    console.print(page.categories())
    console.print()
    for note in page.notes():
        console.print(note)


class _Page:
    """One breakdown, laid out for one console. It only uses Text objects, in which rich reads no markup."""

    def __init__(self, breakdown: Breakdown, console: Console) -> None:
        self._breakdown = breakdown
        self._ascii = console.options.ascii_only
        self._rows = _shown(breakdown.rows)
        self._names = [self._name(row) for row in self._rows]
        self._lay_out(min(console.width, WIDEST))

    def _lay_out(self, width: int) -> None:
        shortest_bar, longest_bar = _BAR_WIDTHS
        shortest_name, longest_name = _NAME_WIDTHS
        figures = [figure for figure in _FIGURES if figure is not _CPU or self._breakdown.cpu != "off"]
        figures = fitting(figures, width, shortest_name + GAP + shortest_bar)
        left = room(figures, width)
        wanted = max(_INDENT * row.depth + cell_len(name) for row, name in zip(self._rows, self._names))
        self._figures = figures
        self._name_width = max(4, min(wanted, longest_name, left - GAP - shortest_bar))
        # Half of the column is for the name, however deep a row is.
        deepest = max(row.depth for row in self._rows)
        self._indent = _INDENT if _INDENT * deepest <= self._name_width // 2 else 1
        self._bar_width = min(longest_bar, left - GAP - self._name_width)
        shares = [row.share for row in self._rows] + [category.share for category in self._breakdown.categories]
        self._full_bar = max(shares)  # bars compare rows; the figure beside a bar is its share of the whole

    def _name(self, row: Row) -> str:
        name = literal(row.operation, self._ascii)
        if row.category == RLPROF and row.uncertainty_ns:
            name += f" ({'+-' if self._ascii else '±'} {duration(row.uncertainty_ns)})"
        return name

    def _short(self, name: str, width: int) -> str:
        return shorten(name, width, "..." if self._ascii else "…")

    def headline(self) -> Text:
        whole = self._breakdown
        if not whole.wall_ns:
            return Text("Nothing was recorded: the profiler was not enabled.", style="bold")
        iterations = f" in {many(whole.iterations, 'iteration')}" if whole.iterations else ""
        largest = self._short(literal(whole.largest.name, self._ascii), 30)
        share = f"{whole.largest.share:.0f}% ({duration(whole.largest.ledger_ns)})"
        return Text(f"{duration(whole.training_ns)}{iterations}. Largest: {largest}, {share}.", style="bold")

    def tree(self) -> Table:
        table = self._table("operation", self._figures)
        for row, name in zip(self._rows, self._names):
            indent = min(self._indent * row.depth, self._name_width // 2)
            shown = " " * indent + self._short(name, self._name_width - indent)
            self._add(table, shown, row.share, [figure.of(row) for figure in self._figures])
        return table

    def categories(self) -> Table:
        table = self._table("category", [_SHARE, _TIME])
        for category in self._breakdown.categories:
            name = self._short(category.name, self._name_width)
            self._add(table, name, category.share, [percent(category.share), duration(category.ledger_ns)])
        return table

    def _table(self, what: str, figures: Sequence[Column[Row]]) -> Table:
        table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
        table.add_column(what, no_wrap=True, width=self._name_width)
        if self._bar_width > 0:
            table.add_column("", no_wrap=True, width=self._bar_width, style="cyan")
        for figure in figures:
            table.add_column(figure.header, no_wrap=True, width=figure.width, justify="right")
        return table

    def _add(self, table: Table, name: str, share: float, figures: Iterable[str]) -> None:
        bar = [Text(_bar(share / self._full_bar * self._bar_width, self._ascii))] if self._bar_width > 0 else []
        table.add_row(Text(name), *bar, *map(Text, figures))

    def notes(self) -> Iterable[Text]:
        whole = self._breakdown
        yield Text("Share and time: the training time that a row accounts for, including the rows below it.")
        if hidden := len(whole.rows) - len(self._rows):
            yield Text(f"Not shown: {hidden:,} rows below {_LEAST_SHARE}% or deeper than {_DEEPEST + 1} levels.")
        yield from map(Text, notes(whole, lambda name: self._short(literal(name, self._ascii), 30)))


def notes(whole: Breakdown, shown: Callable[[str], str]) -> Iterator[str]:
    """What the figures do not tell by themselves, for the text and the HTML report. `shown` shortens a name."""
    if whole.outside:
        parts = ", ".join(f"{duration(part.ns)} of {shown(outside_name(part.name))}" for part in whole.outside)
        yield f"Not counted in any share, because it is not training: {parts}."
        yield f"The whole run took {duration(whole.wall_ns)}."
    if whole.overlapped:
        total, most = duration(sum(whole.overlapped.values())), shown(next(iter(whole.overlapped)))
        yield f"Other lanes worked for {total} while the driver was busy, too, mostly in {most}."
    if sum(whole.lanes.by_kind.values()) > 1:
        kinds = " and ".join(many(n, kind) for kind, n in whole.lanes.by_kind.items())
        yield (
            f"Lanes: {kinds}. On average {whole.lanes.concurrency:.2f} of them were working. The driver is the thread "
            "that runs the training loop."
        )
    if whole.open_spans:
        were, their = ("was", "Its") if whole.open_spans == 1 else ("were", "Their")
        yield f"{many(whole.open_spans, 'span')} {were} still open at the end. {their} time up to the end is counted."
    if whole.cpu == "off":
        yield NO_CPU_TIME


def _shown(rows: Sequence[Row]) -> list[Row]:
    least = _LEAST_SHARE / 100 * sum(row.ledger_ns for row in rows) if len(rows) > _FEW_ROWS else 0
    *operations, unattributed, rlprof = rows
    shown = [row for row in operations if row.depth <= _DEEPEST and row.subtree_ledger_ns >= least]
    return [*shown, unattributed, rlprof]


def _bar(length: float, ascii_only: bool) -> str:
    """A bar of `length` characters, drawn in eighths of a character."""
    if ascii_only:
        return "#" * round(length)
    whole, eighths = divmod(round(8 * length), 8)
    return "█" * whole + " ▏▎▍▌▋▊▉"[eighths].strip()

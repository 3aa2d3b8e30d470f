"""Tables and paragraphs of a text report that fit any console."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rlprof.render.names import LONGEST, bounded, literal, short_path, shorten

WIDEST = 120
"""Longer lines are hard to follow from one end to the other."""
GAP = 2
SHORTEST_NAME = 16

Item = TypeVar("Item")


def plain(render: Callable[[Console], None], width: int, encoding: str = "utf-8") -> str:
    """What `render` prints, without colour or trailing spaces."""
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="replace", newline="")
    render(Console(file=file, width=width, color_system=None, force_terminal=False, force_jupyter=False))
    file.seek(0)
    return "".join(line.rstrip() + "\n" for line in file.read().splitlines())


def as_text(render: Callable[[Item, Console], None], width: int = 100) -> Callable[..., str]:
    """The function `to_text(item, width)`: what `render` prints of an item, as a string."""
    return lambda item, width=width: plain(partial(render, item), width)


@dataclass(frozen=True, slots=True)
class Column(Generic[Item]):
    """A column of figures, wide enough for every value, so that nothing wraps."""

    header: str
    width: int
    of: Callable[[Item], str]
    dispensable: int = 0
    """A narrow console leaves out the columns with the highest number first, together. 0 is never left out."""


def room(columns: Iterable[Column[Item]], width: int) -> int:
    """The width that columns leave for the others on a line."""
    return width - sum(column.width + GAP for column in columns)


def fitting(columns: Sequence[Column[Item]], width: int, least: int) -> list[Column[Item]]:
    """Without the most dispensable columns, until the others leave at least `least` cells of a line."""
    kept = list(columns)
    while room(kept, width) < least and any(column.dispensable for column in kept):
        most = max(column.dispensable for column in kept)
        kept = [column for column in kept if column.dispensable != most]
    return kept


class Layout:
    """One report on one console. Text objects throughout: rich reads no markup in them."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self.width = min(console.width, WIDEST)
        self.ascii = console.options.ascii_only

    def name(self, name: str, width: int = WIDEST) -> str:
        """A name on one line, with at most `width` cells."""
        return shorten(literal(bounded(name), self.ascii), width, "..." if self.ascii else "…")

    def path(self, where: str, width: int) -> str:
        """A path with a line number, shortened to at most `width` cells."""
        return short_path(literal(bounded(where), self.ascii), width, "..." if self.ascii else "…")

    def heading(self, text: str) -> None:
        self._console.print()
        self._console.print(Text(text, style="bold underline"))

    def line(self, text: str, style: str = "", indent: int = 0) -> None:
        """A paragraph, wrapped where the console ends."""
        shown = literal(bounded(text, 5 * LONGEST), self.ascii)
        if self.ascii:
            shown = shown.replace("\\xd7", "x").replace("\\xb1", "+-")
        for line in Text(shown, style=style).wrap(self._console, max(10, self.width - indent)):
            line.rstrip()
            self._console.print(Text(" " * indent) + line, soft_wrap=True)

    def command(self, text: str, indent: int = 0) -> None:
        """A command on a line of its own that is never wrapped, so that it can be pasted into a shell."""
        self._console.print(Text(" " * indent + literal(text)), soft_wrap=True)

    def table(
        self,
        what: str,
        names: Sequence[str],
        items: Sequence[Item],
        columns: Iterable[Column[Item]],
        styles: Sequence[str] = (),
    ) -> None:
        """One row per item. Names come first, shortened to the remaining width. Empty columns are left out."""
        cells = {column: [column.of(item) for item in items] for column in columns}
        names = [literal(bounded(name), self.ascii) for name in names]
        wanted = max([cell_len(name) for name in names] + [len(what)])
        filled = [column for column, values in cells.items() if any(values)]
        shown = fitting(filled, self.width, min(wanted, SHORTEST_NAME))
        width = max(4, min(wanted, room(shown, self.width)))
        table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
        table.add_column(what, no_wrap=True, width=width)
        for column in shown:
            table.add_column(column.header, no_wrap=True, width=column.width, justify="right")
        for place, name in enumerate(names):
            style = styles[place] if styles else ""
            figures = (Text(cells[column][place]) for column in shown)
            table.add_row(Text(self.name(name, width)), *figures, style=style)
        self._console.print(table)

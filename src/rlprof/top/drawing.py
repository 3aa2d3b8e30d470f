"""Lines of exact width: fitted text, bars, curves, and boxes that share their borders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from rich.cells import cell_len, chop_cells
from rich.style import Style
from rich.text import Text

from rlprof.render.names import LONGEST, bounded, literal, shorten
from rlprof.top.look import Glyphs, Look


def fit(text: Text, width: int, look: Look) -> Text:
    """The text with exactly `width` cells: cut with an ellipsis, or filled up with spaces."""
    if text.cell_len > width:
        room = max(0, width - cell_len(look.glyphs.ellipsis))
        text = text.copy()
        text.truncate(room, overflow="crop")
        text.append(look.glyphs.ellipsis[: max(0, width - text.cell_len)])
    if text.cell_len < width:
        text = text.copy()
        text.append(" " * (width - text.cell_len))
    return text


def joined(left: Text, right: Text, width: int, look: Look) -> Text:
    """One text at the left and one at the right end of a line. The right one goes first if there is no room."""
    gap = width - left.cell_len - right.cell_len
    if gap < 2:
        return fit(left, width, look)
    return Text.assemble(left, " " * gap, right)


def name_of(name: str, width: int, look: Look) -> str:
    """A name on one line with at most `width` cells, without control characters."""
    return shorten(literal(bounded(name, 500), look.ascii), width, look.glyphs.ellipsis)


def wrapped(text: str, width: int, most: int, look: Look, hanging: int = 0) -> list[str]:
    """A paragraph in at most `most` lines. The last one ends with an ellipsis if something is left out."""
    lines: list[str] = []
    line = ""
    for word in literal(" ".join(bounded(text, LONGEST).split()), look.ascii).split(" "):
        pieces = chop_cells(word, max(1, width - hanging)) if cell_len(word) > width - hanging else [word]
        for piece in pieces:
            if line.strip() and cell_len(line) + 1 + cell_len(piece) > width:
                lines.append(line)
                line = " " * hanging + piece
            else:
                line = f"{line} {piece}" if line.strip() else line + piece
    lines.append(line)
    if len(lines) > most:
        dots = look.glyphs.ellipsis
        last = lines[most - 1]
        while cell_len(last) + cell_len(dots) > width:
            last = last[:-1]
        lines[most - 1 :] = [last.rstrip() + dots]
    return lines[: max(0, most)]


def bullet(now: float | None, whole: float | None, full: float, width: int, style: Style, look: Look) -> Text:
    """A bar for the share now, with a tick at the share of the whole run."""
    glyphs = look.glyphs
    shown = now if now is not None else whole or 0.0
    halves = round(2 * width * min(1.0, max(0.0, shown / full))) if full > 0 else 0
    cells = [glyphs.bar] * (halves // 2)
    if halves % 2 and glyphs.half:
        cells.append(glyphs.half)
    cells += [" "] * (width - len(cells))
    bar = Text("".join(cells), style=style)
    if now is not None and whole is not None and full > 0 and width:
        place = min(width - 1, int(width * min(1.0, max(0.0, whole / full))))
        bar = Text.assemble(bar[:place], (glyphs.tick, look.style("tick")), bar[place + 1 :])
    return bar


def progress(fraction: float, width: int, look: Look) -> Text:
    """A bar of how much is done."""
    done = min(width, max(0, int(width * fraction)))
    return Text.assemble(
        (look.glyphs.bar * done, look.style("accent")), (look.glyphs.track * (width - done), look.style("frame"))
    )


def curve(values: Sequence[float], width: int, glyphs: Glyphs, least: float | None = None) -> str:
    """The newest values as a line of blocks, one per cell, from `least` (default: the smallest) to the largest. More
    values than cells are averaged, so that none is left out."""
    if width < 1 or not values:
        return ""
    if len(values) > width:
        edges = [place * len(values) // width for place in range(width + 1)]
        values = [sum(values[start:end]) / (end - start) for start, end in pairwise(edges)]
    low = min(values) if least is None else least
    high = max(values)
    if high <= low:
        return glyphs.curve[3 if high > 0 else 0] * len(values)
    top = len(glyphs.curve) - 1
    return "".join(glyphs.curve[min(top, max(0, round(top * (value - low) / (high - low))))] for value in values)


@dataclass(frozen=True, slots=True)
class Panel:
    """A titled part of the screen. Its lines have the width inside of the borders, without the margins."""

    title: str
    lines: Sequence[Text]
    note: str = ""
    """At the right end of the border above."""
    note_style: str = "muted"
    rules: Mapping[int, str] = field(default_factory=dict)
    """Lines that are borders inside of the panel, with their titles."""
    keys: Sequence[tuple[str, ...]] = ()
    """Rows that can be selected, in their order."""


@dataclass(slots=True)
class Boxes:
    """Rows of panels with shared borders, as one table."""

    width: int
    look: Look
    rows: list[list[tuple[int, Panel]]] = field(default_factory=list)
    """Each panel with its inner width."""

    def inner(self, width: int | None = None) -> int:
        """Cells of a line inside the borders and margins of a panel that is so wide."""
        return (self.width if width is None else width) - 4

    def add(self, panel: Panel) -> None:
        self.rows.append([(self.inner(), panel)])

    def add_pair(self, left_inner: int, left: Panel, right: Panel) -> None:
        self.rows.append([(left_inner, left), (self.width - 7 - left_inner, right)])

    def lines(self) -> list[Text]:
        lines: list[Text] = []
        above: list[int] = []
        for number, row in enumerate(self.rows):
            below = self._joints(row)
            lines.append(self._border(above, below, row, is_first=number == 0))
            lines += [self._line(row, place) for place in range(max(len(panel.lines) for _, panel in row))]
            above = below
        lines.append(self._border(above, [], [], is_last=True))
        return lines

    def _line(self, row: Sequence[tuple[int, Panel]], place: int) -> Text:
        """One line of all panels of a row, with the borders beside and between them."""
        glyphs, style = self.look.glyphs, self.look.style("frame")
        parts: list[Text | tuple[str, Style] | str] = []
        after_rule = False
        for inner, panel in row:
            is_rule = place in panel.rules
            parts.append((glyphs.joints[0] if is_rule else glyphs.joints[1] if after_rule else glyphs.side, style))
            if is_rule:
                title = f" {panel.rules[place]} "
                parts += [(glyphs.line, style), (title, self.look.style("title"))]
                parts.append((glyphs.line * (inner + 1 - len(title)), style))
            else:
                line = panel.lines[place] if place < len(panel.lines) else Text()
                parts += [" ", fit(line, inner, self.look), " "]
            after_rule = is_rule
        return Text.assemble(*parts, (glyphs.joints[1] if after_rule else glyphs.side, style))

    def _joints(self, row: Sequence[tuple[int, Panel]]) -> list[int]:
        """Columns of the borders between the panels of a row."""
        places, place = [], 0
        for inner, _ in row[:-1]:
            place += inner + 3
            places.append(place)
        return places

    def _border(
        self, above: Sequence[int], below: Sequence[int], row: Sequence[tuple[int, Panel]],
        is_first: bool = False, is_last: bool = False,
    ) -> Text:  # fmt: skip
        glyphs, style = self.look.glyphs, self.look.style("frame")
        left, right, down, up, cross = tuple(glyphs.joints)
        cells = [glyphs.line] * self.width
        for place in above:
            cells[place] = up
        for place in below:
            cells[place] = cross if place in above else down
        ends = glyphs.corners[:2] if is_first else glyphs.corners[2:] if is_last else left + right
        cells[0], cells[-1] = ends[0], ends[1]
        border = Text("".join(cells), style=style)
        start = 0
        for inner, panel in row:
            end = start + inner + 3
            title = f" {shorten(panel.title, max(4, inner - 4), glyphs.ellipsis)} " if panel.title else ""
            border = _overlaid(border, start + 2, Text(title, style=self.look.style("title")))
            note = f" {panel.note} " if panel.note else ""
            if note and cell_len(title) + cell_len(note) + 4 <= inner:
                border = _overlaid(
                    border, end - 1 - cell_len(note), Text(note, style=self.look.style(panel.note_style))
                )
            start = end
        return border


def _overlaid(line: Text, place: int, text: Text) -> Text:
    """All cells of `line` are one column wide, except where text was laid over them from the left."""
    if not text.plain:
        return line
    head, _, tail = _split(line, place, place + text.cell_len)
    return Text.assemble(head, text, tail)


def _split(line: Text, start: int, end: int) -> tuple[Text, Text, Text]:
    """The line before, in and after these cells."""
    cells, first, last = 0, len(line.plain), len(line.plain)
    for place, char in enumerate(line.plain):
        if cells >= start:
            first = min(first, place)
        if cells >= end:
            last = place
            break
        cells += cell_len(char)
    return line[:first], line[first:last], line[last:]

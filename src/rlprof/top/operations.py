"""The table of operations: their shares now, as bars, against the whole run."""

from __future__ import annotations

import time
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text

from rlprof.analysis.figures import duration, if_known, many, percent, rate
from rlprof.live.frame import Frame
from rlprof.render.names import shorten
from rlprof.top.drawing import Panel, bullet, fit, name_of
from rlprof.top.look import Look
from rlprof.top.view import Row, View, is_tree, rows_of, shown_rows

SHARE, TIME = 7, 10
"""Widths of columns, with the space before them."""
LEAST_NAME, MOST_NAME = 12, 34
LEAST_BAR, MOST_BAR = 6, 28
UNKNOWN = "-"


def operations(frame: Frame, view: View, width: int, most: int, look: Look) -> Panel:
    """At most `most` lines, the first of which names the columns."""
    rows = rows_of(frame, view)
    if not rows:
        return Panel("Operations", [Text(line, look.style("muted")) for line in (_nothing(frame, view, look),)])
    shown, more = shown_rows(rows, view, max(1, most - 1))
    if more and len(shown) == most - 1 > 2:
        shown, more = shown_rows(rows, view, most - 2)
    names = [_name(row, look) for row in shown]
    is_live = frame.is_running or view.past is not None
    first_width = SHARE if is_live else TIME
    with_time = width >= LEAST_NAME + first_width + SHARE + TIME + 2
    figures = first_width + SHARE + (TIME if with_time else 0)
    longest = max(map(cell_len, names))
    name_width = max(LEAST_NAME, min(longest, MOST_NAME, width - figures - LEAST_BAR - 1))
    bar_width = min(MOST_BAR, width - name_width - 1 - figures)
    if bar_width < LEAST_BAR:
        bar_width, name_width = 0, width - figures - 1
    full = max(max(row.now or 0.0 if is_live else 0.0, row.whole or 0.0) for row in shown)
    knows_now = any(row.now is not None for row in rows)
    table = _Table(view, look, is_live, name_width, bar_width, first_width, with_time, full, knows_now)
    lines = [_heading(table), *(_line(row, name, table) for row, name in zip(shown, names))]
    if more and len(lines) < most:
        rest = many(more, "smaller operation") if not (view.filter or view.selected) else f"{more:,} more"
        lines.append(Text(f" {rest}", look.style("muted")))
    return Panel(_title(view, look), lines, _note(frame, view), keys=[row.key for row in shown])


@dataclass(frozen=True, slots=True)
class _Table:
    view: View
    look: Look
    is_live: bool
    name_width: int
    bar_width: int
    first_width: int
    with_time: bool
    full: float
    knows_now: bool


def _title(view: View, look: Look) -> str:
    if view.past is not None:
        past = view.past
        which = f"{past.first:,}" if past.first == past.last else f"{past.first:,} to {past.last:,}"
        return f"Iteration {which}"
    if view.filter:
        return f"Operations with {name_of(view.filter, 20, look)}"
    return {"tree": "Operations", "name": "Operations by name", "now": "Operations by share now"}.get(
        view.order, "Operations by share of the run"
    )


def _note(frame: Frame, view: View) -> str:
    if view.past is not None:
        past = view.past
        ended = time.strftime("%H:%M:%S", time.localtime(past.ended))
        speed = f", {rate(past.steps_per_second)} steps/s" if past.steps_per_second is not None else ""
        return f"{duration(past.wall_ns)}{speed}, ended {ended}"
    if not frame.is_running or not frame.window_ns:
        return ""
    return f"now: last {duration(frame.window_ns)}"


def _heading(table: _Table) -> Text:
    view = table.view
    name = "" if is_tree(view) else " own time"
    first = "it" if view.past is not None else "now" if table.is_live else "time"
    glyphs = table.look.glyphs
    both = f" {glyphs.bar} {first} {glyphs.tick} run" if table.knows_now else f" {glyphs.bar} run"
    legend = both if table.is_live else ""
    legend = legend if len(legend) <= table.bar_width else ""
    cells = f"{name:<{table.name_width + 1}}{legend:<{table.bar_width}}{first:>{table.first_width}}{'run':>{SHARE}}"
    return Text(cells + (f"{'mean call':>{TIME}}" if table.with_time else ""), table.look.style("muted"))


def _name(row: Row, look: Look) -> str:
    return " " * min(2 * row.depth, 16) + name_of(row.operation, 60, look)


def _line(row: Row, name: str, table: _Table) -> Text:
    look = table.look
    selected = row.key == table.view.selected
    ink = look.style("figure" if row.is_phase else "ink")
    quiet = look.style("muted")
    now = row.now if table.is_live else None
    first = if_known(percent, now) if table.is_live else if_known(duration, row.ns)
    spent = f"{if_known(duration, row.call_ns) or UNKNOWN:>{TIME}}" if table.with_time else ""
    bar = bullet(now, row.whole, table.full, max(0, table.bar_width - 1), look.style(row.category), look)
    shown = name if cell_len(name) <= table.name_width else shorten(name, table.name_width, look.glyphs.ellipsis)
    line = Text.assemble(
        (look.glyphs.cursor if selected else " ", look.style("accent")),
        fit(Text(shown, ink), table.name_width, look), " " if table.bar_width else "", bar,
        (f"{first or UNKNOWN:>{table.first_width}}", ink),
        (f"{if_known(percent, row.whole) or UNKNOWN:>{SHARE}}", quiet if table.is_live else ink), (spent, quiet),
    )  # fmt: skip
    if selected:
        line.stylize(look.style("selected"))
    return line


def _nothing(frame: Frame, view: View, look: Look) -> str:
    if view.filter:
        return f"No operation has {name_of(view.filter, 30, look)} in its name."
    if frame.problem:
        return "Nothing was read."
    return "Reading the session." if frame.is_running or not frame.training_s else "Nothing was recorded."

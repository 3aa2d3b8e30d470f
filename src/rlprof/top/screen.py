"""The whole dashboard as lines, for a terminal of any size. A pure function of what is known and what was chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text

from rlprof.live.frame import Frame
from rlprof.top.advice import advice, changes, natural_advice, natural_changes
from rlprof.top.drawing import Boxes, Panel, fit, wrapped
from rlprof.top.header import banners, header
from rlprof.top.lanes import lanes, natural_lanes
from rlprof.top.look import Look
from rlprof.top.machine import machine, machine_line
from rlprof.top.operations import operations
from rlprof.top.view import Key, View, rows_of

WIDE = 92
"""Least width for two columns."""
LEAST_OPERATIONS = 4
MOST_OPERATIONS = 42
MOST_LANES = 24
MOST_CHANGES = 3
LEAST_STUCK = 4
ENOUGH_ADVICE, ENOUGH_STUCK = 5, 8
"""Lines of advice for which operations give way, and of the calls at which a training is stuck."""


@dataclass(frozen=True, slots=True)
class Size:
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Screen:
    lines: list[Text]
    keys: Sequence[Key]
    """The visible rows of operations."""


def screen(frame: Frame, view: View, size: Size, look: Look, keys: bool = True) -> Screen:
    """At most `size.height` lines of `size.width` cells. The last one names the keys."""
    width = max(30, size.width)
    below = [*_message(view, width, look), footer(frame, view, width, look)][-size.height :] if keys else []
    above = banners(frame, width, look)[: max(1, size.height // 4)]
    for line in above:
        line.stylize(look.style("alarm"))
    boxes = Boxes(width, look)
    (_wide if width >= WIDE else _narrow)(boxes, frame, view, size.height - len(below) - len(above))
    body = [*above, *boxes.lines()]
    if keys:
        body = body[: max(0, size.height - len(below))]
        body += [Text(" " * width)] * (size.height - len(below) - len(body))
    panels = [panel for row in boxes.rows for _, panel in row]
    return Screen([*body, *below], next((panel.keys for panel in panels if panel.keys), ()))


def _wide(boxes: Boxes, frame: Frame, view: View, room: int) -> None:
    look, inner = boxes.look, boxes.inner()
    top = header(frame, view, inner, look)
    boxes.add(top)
    left = room - len(top.lines) - 3  # three borders: above, below, and one in the middle
    advised, changed = natural_advice(frame, view, inner, look), natural_changes(frame)
    spare = left - LEAST_OPERATIONS - 4
    changed = min(changed, max(0, spare - 4)) if spare - 4 > 1 else 0
    natural = max(len(rows_of(frame, view)) + 2, natural_lanes(frame) + 5)
    enough = ENOUGH_STUCK if frame.stuck is not None else ENOUGH_ADVICE
    free = left - min(natural, MOST_OPERATIONS) - (changed + 1 if changed else 0) - 1
    advised = max(0, min(advised, spare - 1 - (changed + 1 if changed else 0), max(enough, free)))
    left -= (advised + 1 if advised else 0) + (changed + 1 if changed else 0)
    right_inner = (inner - 3) * 9 // 20
    left_inner = inner - 3 - right_inner
    rows = min(max(1, left), MOST_OPERATIONS, max(LEAST_OPERATIONS, len(rows_of(frame, view)) + 2))
    used = machine(frame, right_inner, look)
    lane_rows = max(1, min(MOST_LANES, natural_lanes(frame), left - len(used.lines) - 1))
    who = lanes(frame, right_inner, lane_rows, look)
    rows = max(rows, min(left, len(who.lines) + len(used.lines) + 1))
    what = operations(frame, view, left_inner, rows, look)
    boxes.add_pair(left_inner, what, _stacked(who, used, left))
    _below(boxes, frame, view, advised, changed)


def _stacked(upper: Panel, lower: Panel, most: int) -> Panel:
    """Two panels above each other."""
    lines = list(upper.lines)
    rules = {}
    if len(lines) + 1 + len(lower.lines) <= most:
        rules[len(lines)] = lower.title
        lines += [Text(), *lower.lines]
    return Panel(upper.title, lines, upper.note, upper.note_style, rules)


def _narrow(boxes: Boxes, frame: Frame, view: View, room: int) -> None:
    look, inner = boxes.look, boxes.inner()
    top = header(frame, view, inner, look)
    boxes.add(top)
    left = room - len(top.lines) - 2
    natural = max(3, len(rows_of(frame, view)) + 2)
    sections = {"operations": min(natural, LEAST_OPERATIONS, max(1, left - 1))}
    left -= sections["operations"] + 1
    wanted = [("lanes", 1), ("advice", LEAST_STUCK if frame.stuck is not None else 2), ("machine", 1), ("changes", 1)]
    natural_of = {
        "lanes": natural_lanes(frame), "advice": natural_advice(frame, view, inner, look), "machine": 1,
        "changes": natural_changes(frame),
    }  # fmt: skip
    for name, least in wanted:
        take = min(least, natural_of[name], max(2, left - 1))
        if take and left >= take + 1:
            sections[name] = take
            left -= take + 1
    growing = [("operations", 8), ("lanes", 4), ("advice", 4), ("operations", natural), ("lanes", MOST_LANES),
               ("advice", natural_of["advice"]), ("changes", MOST_CHANGES)]  # fmt: skip
    if frame.stuck is not None:
        growing.insert(0, ("advice", ENOUGH_ADVICE))
    for name, most in growing:
        if name in sections and left > 0:
            more = max(0, min(left, min(most, natural_of.get(name, natural)) - sections[name]))
            sections[name] += more
            left -= more
    boxes.add(operations(frame, view, inner, sections["operations"], look))
    if "lanes" in sections:
        boxes.add(lanes(frame, inner, sections["lanes"], look))
    if "machine" in sections:
        boxes.add(machine_line(frame, look))
    _below(boxes, frame, view, sections.get("advice", 0), sections.get("changes", 0))


def _below(boxes: Boxes, frame: Frame, view: View, advised: int, changed: int) -> None:
    inner, look = boxes.inner(), boxes.look
    if changed and (found := changes(frame, inner, changed, look)) is not None:
        boxes.add(found)
    if advised:
        boxes.add(advice(frame, view, inner, advised, look))


def _message(view: View, width: int, look: Look) -> list[Text]:
    lines = wrapped(view.message, width - 2, 3, look) if view.message else []
    return [fit(Text(f" {line}", look.style("warn" if view.is_error else "accent")), width, look) for line in lines]


def footer(frame: Frame, view: View, width: int, look: Look) -> Text:
    """The keys. A narrow terminal leaves out those that matter least; `?` has them all."""
    sides, _, enter = look.glyphs.keys
    keys = [
        ("q", "quit", 0), ("?", "help", 0), ("space", "go on" if view.paused else "pause", 2), ("o", "order", 1),
        ("/", "filter", 1), (enter, "open", 2), (sides, "iterations", 3), ("s", "stacks", 1), ("t", "trace", 1),
        ("r", "report", 1),
    ]  # fmt: skip
    if view.runs_training and frame.is_running:
        keys.insert(1, ("^C", "interrupt", 0))
    room = width
    kept = set()
    for key, text, _ in sorted(keys, key=lambda one: one[2]):
        room -= cell_len(key) + len(text) + 3
        if room < -1:
            break
        kept.add(key)
    shown = [(key, text) for key, text, _ in keys if key in kept]
    line = Text()
    for key, text in shown:
        line.append(f" {key}", look.style("key")).append(f" {text} ", look.style("muted"))
    return fit(line, width, look)

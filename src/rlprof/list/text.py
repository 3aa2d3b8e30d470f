"""A listing of sessions as text and JSON."""

from __future__ import annotations

import time
from dataclasses import asdict

import msgspec
from rich.cells import cell_len
from rich.console import Console

from rlprof.analysis.figures import duration, if_known, many, rate
from rlprof.list.sessions import Listed, Listing
from rlprof.render.layout import Column, Layout, as_text, fitting
from rlprof.render.names import literal, shorten

SCHEMA_VERSION = 1
_WIDEST_NAME = 40
"""Cells of a folder's name for which a narrow console leaves out columns. The name is what other commands need."""
_PROGRAM, _STATE = 30, 17


def render(listing: Listing, console: Console) -> None:
    layout = Layout(console)
    if not listing.sessions:
        layout.line(f"There is no session in {listing.folder}. Record one: rlprof run train.py")
        return
    names = [one.folder for one in listing.sessions]
    widest = max(cell_len(literal(name)) for name in names)
    state = min(_STATE, max(cell_len(literal(one.state)) for one in listing.sessions))
    columns = fitting(_columns(state), layout.width, min(_WIDEST_NAME, widest))
    layout.table("session", names, listing.sessions, columns)
    for one in listing.sessions:
        if one.problem is not None:
            layout.line(f"{one.folder} cannot be read: {one.problem}")
    where = f"In {listing.folder}. `rlprof report {listing.folder}/SESSION` shows one, `rlprof report last` the newest."
    if listing.older:
        where += f" {many(listing.older, 'older session')} not shown (--limit)."
    layout.line(where)


to_text = as_text(render)


def to_json(listing: Listing) -> str:
    content = {"schema_version": SCHEMA_VERSION, **asdict(listing)}
    return msgspec.json.format(msgspec.json.encode(content)).decode() + "\n"


def _when(one: Listed) -> str:
    return "" if one.started is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(one.started / 1e9))


def _columns(state: int) -> tuple[Column[Listed], ...]:
    return (
        Column("started", 16, _when, dispensable=4),
        Column("took", 7, lambda one: if_known(duration, one.wall_ns), dispensable=3),
        Column("steps/s", 8, lambda one: if_known(rate, one.steps_per_second), dispensable=1),
        Column("state", state, lambda one: shorten(literal(one.state), state), dispensable=2),
        Column("program", _PROGRAM, lambda one: shorten(literal(one.program or ""), _PROGRAM), dispensable=5),
    )

"""A listing of sessions as text and JSON."""

from __future__ import annotations

import re
import time
from dataclasses import asdict
from pathlib import Path

import msgspec
from rich.cells import cell_len
from rich.console import Console

from rlprof.analysis.figures import duration, if_known, many, rate
from rlprof.list.sessions import Listed, Listing
from rlprof.render.layout import Column, Layout, as_text, fitting, room
from rlprof.render.names import literal, shorten
from rlprof.session.folder import sessions_folder

SCHEMA_VERSION = 1
_PROGRAM, _STATE = 30, 30
_ERROR = re.compile(r"(?!SIG[A-Z]+$|KeyboardInterrupt\b)([A-Z_]\w*)(: .*)?", re.DOTALL)
"""How a run ended that an exception ended: its class, and its message if it has one."""
_VERBS = ("is ", "has ", "cannot ", "does ")
"""Beginnings of a problem that is the rest of a sentence about the session."""


def render(listing: Listing, console: Console) -> None:
    layout = Layout(console)
    if not listing.sessions:
        layout.line(f"There is no session in {listing.folder}. Record one: rlprof run train.py")
        return
    names = [one.folder for one in listing.sessions]
    widest = max(cell_len(literal(name)) for name in names)
    state = max(cell_len(short_state(one.state)) for one in listing.sessions)
    columns = fitting(_columns(state), layout.width, widest)
    # Other commands need the whole name. If its line is too long for a terminal, the terminal wraps it.
    before = console.width
    console.width = max(before, widest - room(columns, 0))
    wide = Layout(console)
    wide.width = console.width
    wide.table("session", names, listing.sessions, columns)
    console.width = before
    for one in listing.sessions:
        if one.problem is not None:
            layout.line(f"{one.folder} {'' if one.problem.startswith(_VERBS) else 'cannot be read: '}{one.problem}.")
    where = f"In {listing.folder}. `rlprof report SESSION` shows one, `rlprof report last` the newest."
    if Path(listing.folder).absolute() != sessions_folder().absolute():
        where = f"In {listing.folder}. `rlprof report {listing.folder}/SESSION` shows one."
    if listing.older:
        where += f" {many(listing.older, 'older session')} not shown (--limit)."
    layout.line(where)


to_text = as_text(render)


def to_json(listing: Listing) -> str:
    content = {"schema_version": SCHEMA_VERSION, **asdict(listing)}
    return msgspec.json.format(msgspec.json.encode(content)).decode() + "\n"


def short_state(state: str) -> str:
    """`failed (RuntimeError)` for an exception with its message, `exit 1` for an exit with its text."""
    error = _ERROR.fullmatch(state)
    short = f"failed ({error[1]})" if error else state.partition(": ")[0] if state.startswith("exit ") else state
    return shorten(literal(short), _STATE)


def _when(one: Listed) -> str:
    return "" if one.started is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(one.started / 1e9))


def _columns(state: int) -> tuple[Column[Listed], ...]:
    return (
        Column("started", 16, _when, dispensable=3),
        Column("took", 7, lambda one: if_known(duration, one.wall_ns), dispensable=4),
        Column("steps/s", 10, lambda one: if_known(rate, one.steps_per_second), dispensable=2),
        Column("state", state, lambda one: short_state(one.state), dispensable=1),
        Column("program", _PROGRAM, lambda one: shorten(literal(one.program or ""), _PROGRAM), dispensable=5),
    )

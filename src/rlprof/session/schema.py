"""The tables of session.db.

Times are ns of the ledger's clock; `origin` in the session's info is that clock when recording began. Cumulative tables
(operation, lane, node, frame, stack) hold the state at the last flush. Journals (iteration, sample, ...) have one row
per event.
"""

from __future__ import annotations

import sqlite3
from dataclasses import fields

from rlprof.ledger.rows import IterationGain, IterationMark, LaneRow, NodeRow
from rlprof.session.records import Sample
from rlprof.session.stacks import FRAME_COLUMNS, STACK_COLUMNS

APPLICATION_ID = 0x726C7066
""" "rlpf" in the file's header, to distinguish a session from other SQLite files."""

VERSION = 4
"""Increased whenever a reader must know of a change."""

FIRST_OF_WORKERS = 1 << 20
"""Operations, lanes and nodes of the driver's process have ids below this. Each worker process has as many above it."""

ROOM_FOR_END = "end room"
"""Key of a placeholder in the session table. `end` takes its place when the run has ended."""

NODE_COLUMNS = NodeRow._fields
ITERATION_COLUMNS = (*IterationMark._fields, "wall")
"""The wall time is end - start, less what lay between iterations that were merged later."""

GAIN_COLUMNS = IterationGain._fields

SAMPLE_COLUMNS = tuple(field.name for field in fields(Sample))

_TABLES = f"""
CREATE TABLE session (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE operation (id INTEGER PRIMARY KEY, name TEXT NOT NULL, category TEXT NOT NULL);
CREATE TABLE lane (id INTEGER PRIMARY KEY, {", ".join(LaneRow._fields[1:])});
CREATE TABLE node ({", ".join(NODE_COLUMNS)}, PRIMARY KEY (id)) WITHOUT ROWID;
CREATE TABLE iteration ({", ".join(ITERATION_COLUMNS)}, PRIMARY KEY (last)) WITHOUT ROWID;
CREATE TABLE gain ({", ".join(GAIN_COLUMNS)}, PRIMARY KEY (iteration, node)) WITHOUT ROWID;
CREATE TABLE sample ({", ".join(SAMPLE_COLUMNS)}, PRIMARY KEY (time)) WITHOUT ROWID;
CREATE TABLE frame ({", ".join(FRAME_COLUMNS)}, PRIMARY KEY (id)) WITHOUT ROWID;
CREATE TABLE stack ({", ".join(STACK_COLUMNS)}, PRIMARY KEY (id)) WITHOUT ROWID;
CREATE TABLE mark (time INTEGER NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL);
CREATE TABLE artifact (path TEXT PRIMARY KEY, kind TEXT NOT NULL, time INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE timeline (id INTEGER PRIMARY KEY, events INTEGER NOT NULL, lost INTEGER NOT NULL, block BLOB NOT NULL);
"""

TABLES = ("session", "operation", "lane", "node", "iteration", "gain", "sample", "frame", "stack", "mark", "artifact",
          "timeline")  # fmt: skip


def create(connection: sqlite3.Connection) -> None:
    """Make an empty session."""
    connection.executescript(
        f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION}; BEGIN; {_TABLES} COMMIT;"
    )

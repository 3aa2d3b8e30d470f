"""Writes a session: one transaction per flush, so that a killed training leaves what the last flush wrote.

A flush is one statement. SQLite releases the interpreter's lock for each statement, and taking it again interrupts the
training: thirty statements per flush held the training up ten times as long as their own work. So the rows go in as
parameters of one INSERT into a view that exists for this connection only, and its trigger puts them into the tables.
"""

from __future__ import annotations

import sqlite3
import time
import zlib
from collections.abc import Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import astuple
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from rlprof.ledger.rows import EVENT, GAIN, IterationMark, LaneRow, NodeRow, OperationRow, unpack_marks
from rlprof.session import schema
from rlprof.session.folder import make_private
from rlprof.session.info import Info, readable
from rlprof.session.merge import MOST_GAINS, MOST_SAMPLES, SLICE, merge_iterations, merge_samples, transaction
from rlprof.session.records import Flush, Lost
from rlprof.session.stacks import FRAME_COLUMNS, STACK_COLUMNS

ROOM = 1_500
"""Characters reserved for the end of a run, more than it needs."""
MOST_TIMELINE_BYTES = 64 << 20
"""Limit in compressed bytes. The timeline is a window on the last spans, not an account, so the oldest blocks go."""

STATE = ("wall", "clock", "cpu", "clock_drift", "open", "iterations", "iteration_sum", "iteration_min", "iteration_max",
         "iteration_histogram", "steps", "episodes", "process_peak", "device_pending", "device_lost")  # fmt: skip
"""Keys of `raw` that describe the whole ledger."""

Row = TypeVar("Row", OperationRow, LaneRow, NodeRow)

_encode = msgspec.json.encode

_ROWS = {
    "operation": OperationRow._fields,
    "lane": LaneRow._fields,
    "iteration": schema.ITERATION_COLUMNS,
    "gain": schema.GAIN_COLUMNS,
    "sample": schema.SAMPLE_COLUMNS,
    "frame": FRAME_COLUMNS,
    "stack": STACK_COLUMNS,
    "mark": ("time", "kind", "text"),
    "artifact": ("path", "kind", "time"),
    "session": ("key", "value"),
}
"""Tables whose rows go in as JSON arrays. The histograms of nodes go in as bytes beside the rows."""


def _put_rows(table: str, columns: int, last: str = "") -> str:
    places = [f"json_extract(value, '$[{column}]')" for column in range(columns)] + ([last] if last else [])
    return f"INSERT OR REPLACE INTO {table} SELECT {', '.join(places)} FROM json_each(NEW.{table});"


# In the place of its histogram, a node's row has where that begins and how long it is: see _apart.
_JSON_PLACE, _JSON_LENGTH = (f"json_extract(value, '$[{len(schema.NODE_COLUMNS) - 1 + more}]')" for more in (0, 1))
# SQLite makes NULL of no bytes at all.
_HISTOGRAM = f"coalesce(substr(NEW.histograms, {_JSON_PLACE}, {_JSON_LENGTH}), x'')"

_FLUSH_VIEW = f"""
CREATE TEMP VIEW flush AS SELECT {", ".join(f"NULL AS {name}" for name in (*_ROWS, "node", "histograms"))};
CREATE TEMP TRIGGER flush_rows INSTEAD OF INSERT ON flush BEGIN
  {" ".join(_put_rows(table, len(columns)) for table, columns in _ROWS.items())}
  {_put_rows("node", len(schema.NODE_COLUMNS) - 1, _HISTOGRAM)}
END;
"""


class SessionWriter:
    """The only connection that writes. Not for several threads at once."""

    def __init__(self, path: Path, info: Info, most_gains: int = MOST_GAINS) -> None:
        make_private(path)  # the journal gets the same permissions
        self._connection = sqlite3.connect(path, timeout=2, isolation_level=None, check_same_thread=False)
        self._most_gains = most_gains
        self._gains = self._samples = self._timeline_bytes = 0
        self._nodes: dict[int, NodeRow] = {}
        self._lanes: dict[int, LaneRow] = {}
        self._operations: dict[int, OperationRow] = {}
        self._state: dict[str, Any] = {}
        """The state of the last flush."""
        self._evidence = ""
        """The evidence of the last flush, as it was written."""
        self._resets = 0
        self._merged = -1
        """The last iteration of the current round of merging that was merged."""
        try:
            # Not WAL: its index is a file that is mapped into memory, and truncating that file would kill this process.
            # Without WAL, readers hold up the writer, so they copy a session that is being written: see the reader. The
            # journal is kept, so that on a full disk there is still room to change a page.
            self._connection.execute("PRAGMA journal_mode = PERSIST")
            self._connection.execute("PRAGMA mmap_size = 0")
            self._connection.execute("PRAGMA temp_store = MEMORY")
            self._connection.execute("PRAGMA synchronous = OFF")  # there is nothing yet that could be damaged
            schema.create(self._connection)
            self.describe(info)
            self._put(schema.ROOM_FOR_END, " " * ROOM)
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._connection.execute(f"PRAGMA journal_size_limit = {8 << 20}")
            self._connection.executescript(_FLUSH_VIEW)
        except BaseException:
            self._connection.close()
            raise

    def describe(self, info: Info) -> None:
        """Write the description of the run."""
        self._put("info", info)

    def write(self, batch: Flush) -> None:
        """Write all of a flush. If this raises, nothing was written, and the same flush can be written again."""
        nodes = _changed(batch.raw["nodes"], self._nodes)
        lanes = _changed(batch.raw["lanes"], self._lanes)
        operations = _changed(batch.raw["operations"], self._operations)
        gains = list(GAIN.iter_unpack(batch.gains))
        node_rows, histograms = _apart(nodes)
        state = _state(batch)
        evidence = _encode(batch.evidence).decode()
        values = [("state", _encode(state).decode()), ("costs", _encode(batch.costs).decode())]
        if evidence != self._evidence:
            values.append(("evidence", evidence))
        rows: dict[str, Sequence[Any]] = {
            "operation": [row._replace(name=readable(row.name)) for row in operations],
            "lane": [row._replace(name=readable(row.name)) for row in lanes],
            "iteration": [_with_wall(mark, batch) for mark in unpack_marks(batch.iterations)],
            "gain": gains,
            "sample": [astuple(sample) for sample in batch.samples],
            "frame": batch.frames,
            "stack": batch.stacks,
            "mark": [astuple(mark) for mark in batch.marks],
            "artifact": [astuple(artifact) for artifact in batch.artifacts],
            "session": values,
            "node": node_rows,
        }
        parameters = (*(_encode(rows[name]).decode() for name in (*_ROWS, "node")), histograms)
        resets = batch.resets != self._resets
        held_gains = (0 if resets else self._gains) + len(gains)
        held_samples = (0 if resets else self._samples) + len(batch.samples)
        held_bytes = 0 if resets else self._timeline_bytes
        merges = held_samples > MOST_SAMPLES
        alone = not (resets or merges or batch.events or batch.events_lost)
        with nullcontext() if alone else transaction(self._connection):
            if resets:
                for journal in ("iteration", "gain", "timeline", "sample", "stack"):
                    self._connection.execute(f"DELETE FROM {journal}")
            self._connection.execute(f"INSERT INTO flush VALUES ({', '.join('?' * len(parameters))})", parameters)
            held_bytes = self._write_timeline(batch, held_bytes)
            if merges:
                held_samples = merge_samples(self._connection)
        self._gains, self._samples, self._timeline_bytes = held_gains, held_samples, held_bytes
        self._operations.update((operation.id, operation) for operation in operations)
        self._resets, self._state, self._evidence = batch.resets, state, evidence
        self._nodes.update((node.id, node) for node in nodes)
        self._lanes.update((lane.id, lane) for lane in lanes)
        self._merge()

    def _merge(self) -> None:
        """Merge old iterations, about one slice per flush, in separate transactions so that no flush has to wait. The
        limit counts rows, not seconds, so that a session is the same on a busy machine as on an idle one."""
        idle = gone = 0
        while self._gains > self._most_gains and idle < 2 and gone < SLICE // 2:
            before = self._gains
            self._gains, self._merged = merge_iterations(self._connection, self._gains, self._merged)
            idle = idle + 1 if self._gains == before else 0
            gone += before - self._gains

    def missing(self, raw: dict[str, Any], because: str) -> Lost:
        """The part of the ledger that the session does not hold."""
        calls = sum(row.calls for row in raw["nodes"]) - sum(row.calls for row in self._nodes.values())
        wall, iterations, steps = (
            max(0, raw[name] - self._state.get(name, 0)) for name in ("wall", "iterations", "steps")
        )
        return Lost(wall, iterations, steps, max(0, calls), readable(because)[:200])

    def end(self, how: str, lost: Lost | None = None) -> None:
        """Write how the run ended and what is missing. After this the session is one plain file that opens on a
        read-only disk."""
        with transaction(self._connection):
            # In the reserved place, because a full disk has no other.
            self._connection.execute("DELETE FROM session WHERE key = ?", (schema.ROOM_FOR_END,))
            self._put("end", {"how": readable(how), "time": time.time_ns(), "lost": lost})
        with suppress(sqlite3.OperationalError):  # a reader is active: the journal stays
            self._connection.execute("PRAGMA journal_mode = DELETE")

    def close(self) -> None:
        self._connection.close()

    def _put(self, key: str, value: Any) -> None:
        self._connection.execute("INSERT OR REPLACE INTO session VALUES (?, ?)", (key, _encode(value).decode()))

    def _write_timeline(self, batch: Flush, held: int) -> int:
        if not batch.events and not batch.events_lost:
            return held
        block = zlib.compress(batch.events, 1)
        self._connection.execute(
            "INSERT INTO timeline (events, lost, block) VALUES (?, ?, ?)",
            (len(batch.events) // EVENT.size, batch.events_lost, block),
        )
        held += len(block)
        return self._drop_oldest_blocks(held) if held > MOST_TIMELINE_BYTES else held

    def _drop_oldest_blocks(self, held: int) -> int:
        rows = self._connection.execute("SELECT id, length(block), events, lost FROM timeline ORDER BY id").fetchall()
        lost = 0
        for id, size, events, already_lost in rows[:-1]:
            if held <= MOST_TIMELINE_BYTES // 2:
                break
            self._connection.execute("DELETE FROM timeline WHERE id = ?", (id,))
            held -= size
            lost += events + already_lost
        self._connection.execute(
            "UPDATE timeline SET lost = lost + ? WHERE id = (SELECT min(id) FROM timeline)", (lost,)
        )
        return held


def _state(batch: Flush) -> dict[str, Any]:
    return {
        **{name: batch.raw[name] for name in STATE},
        "time": batch.time,
        "written": time.time_ns(),
        "writer_cpu_ns": batch.writer_cpu_ns,
        "after_ns": batch.after_ns,
        "wait_cpu_ns": batch.wait_cpu_ns,
        "torch_threads": batch.torch_threads,
        "tick_ns": batch.tick_ns,
        "stacks_lost": batch.stacks_lost,
        "idle_ns": batch.idle_ns,
        "planned": batch.planned,
    }


def _with_wall(mark: IterationMark, batch: Flush) -> tuple[int, ...]:
    return (*mark, mark.end - mark.start - batch.between.get(mark.last, 0))


def _changed(rows: Iterable[Row], known: dict[int, Row]) -> list[Row]:
    return [row for row in rows if known.get(row.id) != row]


def _apart(nodes: Sequence[NodeRow]) -> tuple[list[tuple[Any, ...]], bytes]:
    """The rows, each with the place (from 1) and length of its histogram, and all histograms joined."""
    rows = []
    place = 1
    for node in nodes:
        rows.append((*node[:-1], place, len(node.histogram)))
        place += len(node.histogram)
    return rows, b"".join(node.histogram for node in nodes)

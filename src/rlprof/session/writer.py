"""Writes a session: one transaction a flush, so that a killed training leaves what the last one wrote."""

from __future__ import annotations

import sqlite3
import struct
import time
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import astuple
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from rlprof.session import schema
from rlprof.session.histograms import pack_histogram
from rlprof.session.info import Info, readable
from rlprof.session.merge import MOST_GAINS, MOST_SAMPLES, merge_iterations, merge_samples
from rlprof.session.records import Batch

_MARK = struct.Struct("=qqIIqq")
_GAIN = struct.Struct("=IIQqqqqq")
EVENT_BYTES = 24
MOST_TIMELINE_BYTES = 64 << 20
"""Compressed. The timeline is a window on the last spans, not an account: the oldest blocks go."""

STATE = ("wall", "clock", "cpu", "clock_drift", "open", "iterations", "steps", "episodes", "process_peak",
         "device_pending", "device_lost")  # fmt: skip
"""What `raw` has of the ledger as a whole."""

_ROWS_AT_ONCE = (96, 32, 8, 2, 1)
MOST_PARAMETERS = 999
"""Of one statement, in every SQLite."""

_encode = msgspec.json.encode


class SessionWriter:
    """The one connection that writes. Not for several threads at once."""

    def __init__(self, path: Path, info: Info, most_gains: int = MOST_GAINS) -> None:
        self._connection = sqlite3.connect(path, timeout=2, isolation_level=None, check_same_thread=False)
        self._most_gains = most_gains
        self._gains = self._samples = self._timeline_bytes = 0
        self._nodes: dict[int, tuple[Any, ...]] = {}
        self._lanes: dict[int, tuple[Any, ...]] = {}
        self._operations = 0
        self._resets = 0
        try:
            schema.create(self._connection)
            # Where the file system cannot do WAL, SQLite stays with its rollback journal, which is as safe.
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._connection.execute(f"PRAGMA journal_size_limit = {8 << 20}")
            self._put("info", info)
        except BaseException:
            self._connection.close()
            raise

    def write(self, batch: Batch) -> None:
        """All of it, or, with an exception, nothing: then the same batch may be written again."""
        nodes = _changed(batch.raw["nodes"], self._nodes)
        lanes = _changed(batch.raw["lanes"], self._lanes)
        operations = batch.raw["operations"][self._operations :]
        iterations = [(*mark, mark[1] - mark[0]) for mark in _MARK.iter_unpack(batch.iterations)]
        gains = list(_GAIN.iter_unpack(batch.gains))
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            if batch.resets != self._resets:
                for journal in ("iteration", "gain", "timeline"):
                    self._connection.execute(f"DELETE FROM {journal}")
                self._gains = self._timeline_bytes = 0
            self._insert("operation", 3, [(id, readable(name), category) for id, name, category in operations])
            self._insert("lane", 6, [(id, kind, readable(name), *rest) for id, kind, name, *rest in lanes])
            self._insert("node", len(schema.NODE_COLUMNS), [(*row[:-1], pack_histogram(row[-1])) for row in nodes])
            self._insert("iteration", len(schema.ITERATION_COLUMNS), iterations)
            self._insert("gain", len(schema.GAIN_COLUMNS), gains)
            self._insert("sample", len(schema.SAMPLE_COLUMNS), [astuple(sample) for sample in batch.samples])
            self._insert("mark", 3, [astuple(mark) for mark in batch.marks])
            self._insert("artifact", 3, [astuple(artifact) for artifact in batch.artifacts])
            timeline_bytes = self._write_timeline(batch)
            self._put("state", _state(batch))
            self._put("costs", batch.costs)
            gains_left, samples_left = self._merge(self._gains + len(gains), self._samples + len(batch.samples))
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        self._gains, self._samples, self._timeline_bytes = gains_left, samples_left, timeline_bytes
        self._operations += len(operations)
        self._resets = batch.resets
        self._nodes.update((node[0], node) for node in nodes)
        self._lanes.update((lane[0], lane) for lane in lanes)

    def end(self, how: str) -> None:
        """The last word: how the run ended. After it the session is one plain file that opens on a read-only disk."""
        self._put("end", {"how": how, "time": time.time_ns()})
        with suppress(sqlite3.OperationalError):  # somebody is reading it: the journal goes when they do
            self._connection.execute("PRAGMA journal_mode = DELETE")

    def close(self) -> None:
        self._connection.close()

    def _put(self, key: str, value: Any) -> None:
        self._connection.execute("INSERT OR REPLACE INTO session VALUES (?, ?)", (key, _encode(value).decode()))

    def _insert(self, table: str, columns: int, rows: Sequence[Any]) -> None:
        """Many rows a statement: SQLite gives the interpreter's lock back for each one it runs, and every such change of
        hands holds up the training. A few sizes, so that Python keeps the compiled statements."""
        row = f"({', '.join('?' * columns)})"
        start = 0
        for size in _ROWS_AT_ONCE:
            if size * columns > MOST_PARAMETERS:
                continue
            statement = f"INSERT OR REPLACE INTO {table} VALUES {', '.join([row] * size)}"
            while len(rows) - start >= size:
                self._connection.execute(statement, tuple(chain.from_iterable(rows[start : start + size])))
                start += size

    def _write_timeline(self, batch: Batch) -> int:
        if not batch.events and not batch.events_lost:
            return self._timeline_bytes
        block = zlib.compress(batch.events, 1)
        self._connection.execute(
            "INSERT INTO timeline (events, lost, block) VALUES (?, ?, ?)",
            (len(batch.events) // EVENT_BYTES, batch.events_lost, block),
        )
        total = self._timeline_bytes + len(block)
        if total > MOST_TIMELINE_BYTES:
            total = self._drop_oldest_blocks(total)
        return total

    def _drop_oldest_blocks(self, total: int) -> int:
        rows = self._connection.execute("SELECT id, length(block), events, lost FROM timeline ORDER BY id").fetchall()
        lost = 0
        for id, size, events, already_lost in rows[:-1]:
            if total <= MOST_TIMELINE_BYTES // 2:
                break
            self._connection.execute("DELETE FROM timeline WHERE id = ?", (id,))
            total -= size
            lost += events + already_lost
        self._connection.execute(
            "UPDATE timeline SET lost = lost + ? WHERE id = (SELECT min(id) FROM timeline)", (lost,)
        )
        return total

    def _merge(self, gains: int, samples: int) -> tuple[int, int]:
        if gains > self._most_gains:
            gains = merge_iterations(self._connection, self._most_gains)
        if samples > MOST_SAMPLES:
            samples = merge_samples(self._connection)
        return gains, samples


def _state(batch: Batch) -> dict[str, Any]:
    return {
        **{name: batch.raw[name] for name in STATE},
        "time": batch.time,
        "written": time.time_ns(),
        "writer_cpu_ns": batch.writer_cpu_ns,
        "torch_threads": batch.torch_threads,
    }


def _changed(rows: Iterable[tuple[Any, ...]], known: dict[int, tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [row for row in rows if known.get(row[0]) != row]

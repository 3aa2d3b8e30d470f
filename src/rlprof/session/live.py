"""Reads the few rows of a running session that a live view needs every second.

`Session` copies a session that is being written, so that its writer never waits for a reader that computes. For a few
rows that would cost more than reading them: this reader keeps the writer waiting for some milliseconds instead.
"""

from __future__ import annotations

import os
from typing import Annotated, NamedTuple

import msgspec

from rlprof.ledger.rows import LaneRow
from rlprof.session import schema
from rlprof.session.reader import Count, Gain, Id, IterationRow, LaneRowRead, Session, Signed
from rlprof.session.records import Mark, Sample

Place = Annotated[int, msgspec.Meta(ge=-1, lt=2**32)]


class NodePlace(NamedTuple):
    """Where a node is in the call trees, and what it has gained so far. Times are ns."""

    id: int
    parent: int
    lane: int
    operation: int
    calls: int
    self_ns: int
    ledger_ns: int
    overlapped_ns: int
    waited_ns: int
    off_cpu_ns: int
    cost_ns: int


_NODE = ("id", "parent", "lane", "operation", "calls", "self", "ledger", "overlapped", "waited", "off_cpu", "cost")
_NodeRead = tuple[Id, Place, Id, Place, Count, Count, Count, Count, Count, Signed, Count]


class LiveSession(Session):
    """A session for a moment. Close it at once: the training's flushes wait for it."""

    def __init__(self, given: str | os.PathLike[str]) -> None:
        super().__init__(given, briefly=True)

    def newest_iterations(self, most: int) -> list[IterationRow]:
        """The newest iterations, in order."""
        columns = ", ".join(schema.ITERATION_COLUMNS)
        query = f"SELECT {columns} FROM iteration ORDER BY last DESC LIMIT {int(most)}"
        found: list[IterationRow] = self._rows(query, IterationRow)
        return found[::-1]

    def newest_samples(self, most: int) -> list[Sample]:
        """The newest samples of the system, in order."""
        return self._samples(f" DESC LIMIT {int(most)}")[::-1]

    def newest_marks(self, most: int) -> list[Mark]:
        """The newest marks, in order."""
        return self._marks(f" DESC LIMIT {int(most)}")[::-1]

    def lane_rows(self) -> list[LaneRow]:
        rows: list[LaneRow] = self._rows(f"SELECT {', '.join(LaneRow._fields)} FROM lane ORDER BY id", LaneRowRead)
        return rows

    def operation_names(self) -> dict[int, tuple[str, str]]:
        """Name and category by id."""
        rows = self._rows("SELECT id, name, category FROM operation", tuple[Id, str, str])
        return {id: (name, category) for id, name, category in rows}

    def node_places(self) -> dict[int, NodePlace]:
        """All nodes by id, without their histograms, which are most of the data."""
        rows = self._rows(f"SELECT {', '.join(_NODE)} FROM node", _NodeRead)
        return {row[0]: NodePlace(*row) for row in rows}

    def gains_of(self, iterations: list[IterationRow]) -> list[Gain]:
        """What each node gained in these neighbouring iterations."""
        return self.gains(iterations[0], iterations[-1]) if iterations else []

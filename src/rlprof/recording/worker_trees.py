"""A worker process's call trees as part of the session: with ids of their own, and names that say whose they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from rlprof.ledger.histogram import pack, unpack
from rlprof.ledger.rows import LaneRow, NodeRow, OperationRow, with_types
from rlprof.session.schema import FIRST_OF_WORKERS

OperationId = Callable[[str, str], int]
"""By name and category."""

Count = Annotated[int, msgspec.Meta(ge=0, le=2**56)]
"""In ns, two years; the sums of many of them still fit 64 bits."""
Signed = Annotated[int, msgspec.Meta(ge=-(2**56), le=2**56)]
Place = Annotated[int, msgspec.Meta(ge=-1, lt=FIRST_OF_WORKERS)]
"""An id, or -1 for none."""

SUMMED = ("calls", "busy", "self", "ledger", "overlapped", "waited", "off_cpu", "cost", "device_ns", "device_calls")
"""Columns of a node's row that add up where one process goes on for another."""
LARGEST = ("max", "memory_peak", "memory_rise", "device_peak", "device_rise")
UNKNOWN = dict.fromkeys(LARGEST[1:], -1)
EMPTY: dict[str, Any] = {**dict.fromkeys((*SUMMED, "min", "max"), 0), **UNKNOWN, "histogram": b""}
MAIN = "main"

if TYPE_CHECKING:
    DumpOperation = OperationRow
    DumpLane = LaneRow
    DumpNode = NodeRow
else:
    DumpOperation = with_types(OperationRow, str, id=Count)
    DumpLane = with_types(LaneRow, str, id=Count, on_driver=bool, alive=bool, uses=Count)
    _PLACES = dict.fromkeys(("id", "parent", "lane", "operation"), Place)
    _SIGNED = dict.fromkeys(("off_cpu", *UNKNOWN), Signed)
    DumpNode = with_types(NodeRow, Count, histogram=bytes, **_PLACES, **_SIGNED)


class Dump(msgspec.Struct):
    """What a worker process writes: see workers.py. Rows as the core's raw.c makes them."""

    pid: int
    parent: int
    name: str
    epoch: int
    driver_iteration: int
    begun: int
    """Which beginning of the training the accounts count from; those of an earlier one are start-up's."""
    steps: Count
    episodes: Count
    iterations: Count
    iterating: bool
    """One more is under way."""
    learned: bool
    trained: int
    """When something was last stepped, learned or marked there, by the clock that all share."""
    ancestors: list[int]
    """Its parent, the parent's parent and so on."""
    grouped: bool
    """It trains one model together with others: their iterations are the same ones."""
    operations: list[DumpOperation]
    lanes: list[DumpLane]
    nodes: list[DumpNode]

    def holds(self) -> bool:
        """Whether parents come first, on the lane of their children: whoever has written the file."""
        lanes = {-1: None} | {row.id: row.lane for row in self.nodes}
        seen = {-1}
        for row in self.nodes:
            if row.parent not in seen or lanes[row.parent] not in (None, row.lane):
                return False
            seen.add(row.id)
        return True


class Graft:
    """The place of one process in the session, or of several of a kind, one after the other."""

    def __init__(self, number: int, name: str) -> None:
        self.name = name
        self.ended = False
        self.lanes: dict[int, LaneRow] = {}
        self.rows: dict[int, NodeRow] = {}
        """By id, parents first."""
        self._base = number * FIRST_OF_WORKERS
        self._before: dict[int, NodeRow] = {}
        """What earlier processes left."""
        self._begun = 0
        self._lane_ids: dict[str, int] = {}
        self._node_ids: dict[tuple[int, int, int], int] = {}

    def put(self, dump: Dump, operation_id: OperationId) -> None:
        """What the process has recorded up to now."""
        # The lane on the driver's side stands for a driver that is elsewhere.
        lanes = {row.id: self._lane(row.name, row.alive, row.uses) for row in dump.lanes if not row.on_driver}
        operations = {row.id: operation_id(row.name, row.category) for row in dump.operations}
        ids: dict[int, int] = {-1: -1}
        for row in dump.nodes:
            if row.lane not in lanes:
                continue
            parent, lane, operation = ids[row.parent], lanes[row.lane], operations.get(row.operation, -1)
            id = self._node_ids.setdefault((parent, lane, operation), self._base + len(self._node_ids))
            ids[row.id] = id
            placed = row._replace(id=id, parent=parent, lane=lane, operation=operation)
            if dump.begun != self._begun:
                placed = placed._replace(ledger=0)  # written before the training began, which is known by now
            before = self._before.get(id)
            self.rows[id] = placed if before is None else together(before, placed)

    def end(self) -> None:
        self.ended = True
        self.lanes = {id: lane._replace(alive=False) for id, lane in self.lanes.items()}

    def begin_again(self, name: str) -> None:
        """Another process goes on here."""
        self.name, self.ended = name, False
        self._before = dict(self.rows)
        self.lanes = {id: self.lanes[id]._replace(name=self._shown(lane)) for lane, id in self._lane_ids.items()}

    def begin_at(self, begun: int) -> None:
        """The training has begun: what was received before is start-up's."""
        self._begun = begun
        self._before = {id: row._replace(ledger=0) for id, row in self._before.items()}
        self.rows = {id: row._replace(ledger=0) for id, row in self.rows.items()}

    def forget(self) -> None:
        """The ledger has: the places stay, with nothing in them."""
        self._before = {}
        self.rows = {id: row._replace(**EMPTY) for id, row in self.rows.items()}

    def _lane(self, name: str, alive: bool, uses: int) -> int:
        id = self._lane_ids.setdefault(name, self._base + len(self._lane_ids))
        self.lanes[id] = LaneRow(id, "process", self._shown(name), False, alive, uses)
        return id

    def _shown(self, lane: str) -> str:
        return self.name if lane == MAIN else f"{self.name}/{lane}"


def together(one: NodeRow, other: NodeRow) -> NodeRow:
    """Two rows of one place."""
    figures: dict[str, Any] = {column: getattr(one, column) + getattr(other, column) for column in SUMMED}
    figures |= {column: max(getattr(one, column), getattr(other, column)) for column in LARGEST}
    figures["min"] = min((part.min for part in (one, other) if part.calls), default=0)
    figures["histogram"] = pack(Counter(unpack(one.histogram)) + Counter(unpack(other.histogram)))
    return other._replace(**figures)

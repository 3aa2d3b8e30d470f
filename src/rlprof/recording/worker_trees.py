"""Merges the call trees of worker processes into the session, with ids and lane names of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from rlprof.ledger.histogram import pack, unpack
from rlprof.ledger.rows import LaneRow, NodeRow, OperationRow, with_types
from rlprof.ledger.stacks import CodeLine, Key, Total
from rlprof.session.schema import FIRST_OF_WORKERS

OperationId = Callable[[str, str], int]
"""Finds the id by name and category."""

Count = Annotated[int, msgspec.Meta(ge=0, le=2**56)]
"""Two years in ns. The sum of many such values still fits into 64 bits."""
Signed = Annotated[int, msgspec.Meta(ge=-(2**56), le=2**56)]
Place = Annotated[int, msgspec.Meta(ge=-1, lt=FIRST_OF_WORKERS)]
"""An id, or -1 for none."""

SUMMED = ("calls", "busy", "self", "ledger", "overlapped", "waited", "off_cpu", "cost", "device_ns", "device_calls")
"""Columns of a node's row that are summed when one process continues the lanes of another."""
LARGEST = ("max", "memory_peak", "memory_rise", "device_peak", "device_rise")
UNKNOWN = dict.fromkeys(LARGEST[1:], -1)
EMPTY: dict[str, Any] = {**dict.fromkeys((*SUMMED, "min", "max"), 0), **UNKNOWN, "histogram": b""}
MAIN = "main"

if TYPE_CHECKING:
    DumpOperation = OperationRow
    DumpLane = LaneRow
    DumpNode = NodeRow
    DumpFrame = CodeLine
else:
    DumpOperation = with_types(OperationRow, str, id=Count)
    DumpLane = with_types(
        LaneRow, str, id=Count, on_driver=bool, alive=bool, uses=Count, node=Place, since=Signed, waits=bool
    )
    _PLACES = dict.fromkeys(("id", "parent", "lane", "operation"), Place)
    _SIGNED = dict.fromkeys(("off_cpu", *UNKNOWN), Signed)
    DumpFrame = with_types(CodeLine, str, line=Count, user=bool)
    DumpNode = with_types(NodeRow, Count, histogram=bytes, **_PLACES, **_SIGNED)


class DumpEvidence(msgspec.Struct):
    """What the probes of a worker process know besides times: see rlprof.probes.seen."""

    torch_threads: Count | None
    cpu_ns: Count
    helpers_cpu_ns: Count
    levels: list[tuple[str, str, Count, bool, Count, Count]]


class Dump(msgspec.Struct):
    """What a worker process writes: see worker.py. The rows are those of the core's raw.c."""

    pid: int
    parent: int
    name: str
    epoch: int
    driver_iteration: int
    begun: int
    """The beginning of the training that the accounts count from. Accounts from before it belong to start-up."""
    steps: Count
    episodes: Count
    iterations: Count
    iterating: bool
    """One more iteration is under way."""
    learned: bool
    trained: int
    """When a step, a backward pass or an iteration last happened, by the shared clock."""
    ancestors: list[int]
    """The parent process, its parent, and so on."""
    grouped: bool
    """It trains one model together with other processes, and they share their iterations."""
    operations: list[DumpOperation]
    lanes: list[DumpLane]
    nodes: list[DumpNode]
    frames: list[DumpFrame] = []
    stacks: list[tuple[Place, list[Place], Count, Signed]] = []
    """Node, frames by their place in `frames`, ns, and change of memory."""
    evidence: DumpEvidence | None = None

    def is_consistent(self) -> bool:
        """True if parents come first, on the lane of their children, and stacks have known frames. Any process may have
        written the file."""
        lanes = {-1: None} | {row.id: row.lane for row in self.nodes}
        seen = {-1}
        for row in self.nodes:
            if row.parent not in seen or lanes[row.parent] not in (None, row.lane):
                return False
            seen.add(row.id)
        known = range(len(self.frames))
        return all(frame in known for _, frames, _, _ in self.stacks for frame in frames)


class MergedWorker:
    """The part of the session for one process, or for several of a kind, one after the other."""

    def __init__(self, number: int, name: str) -> None:
        self.number = number
        self.name = name
        self.ended = False
        self.lanes: dict[int, LaneRow] = {}
        self.rows: dict[int, NodeRow] = {}
        """By id, parents first."""
        self.stacks: dict[Key, Total] = {}
        """By node and frames, as the session numbers them."""
        self._stacks_before: dict[Key, Total] = {}
        self._base = number * FIRST_OF_WORKERS
        self._before: dict[int, NodeRow] = {}
        """Rows of earlier processes."""
        self._begun = 0
        self._lane_ids: dict[str, int] = {}
        self._node_ids: dict[tuple[int, int, int], int] = {}

    def put(self, dump: Dump, operation_id: OperationId, frames: Sequence[int]) -> None:
        """Merge what the process has recorded so far."""
        # The driver's lane of a worker stands for the real driver, which is another process.
        lanes = {row.id: self._lane(row.name) for row in dump.lanes if not row.on_driver}
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
                placed = placed._replace(ledger=0)  # written before this process knew that the training has begun
            before = self._before.get(id)
            self.rows[id] = placed if before is None else add_rows(before, placed)
        for latest in dump.lanes:
            if latest.id in lanes:
                self._put_lane(lanes[latest.id], latest, ids.get(latest.node, 0))
        self.stacks = dict(self._stacks_before)
        for node, places, ns, memory in dump.stacks if dump.begun == self._begun else ():
            if node in ids:
                key = ids[node], tuple(frames[place] for place in places)
                earlier = self.stacks.get(key, Total(0, 0))
                self.stacks[key] = Total(earlier.ns + ns, earlier.memory + memory)

    def end(self) -> None:
        self.ended = True
        self.lanes = {id: lane._replace(alive=False, waits=False) for id, lane in self.lanes.items()}

    def begin_again(self, name: str) -> None:
        """Another process continues these lanes."""
        self.name, self.ended = name, False
        self._before = dict(self.rows)
        self._stacks_before = dict(self.stacks)
        self.lanes = {id: self.lanes[id]._replace(name=self._shown(lane)) for lane, id in self._lane_ids.items()}

    def begin_at(self, begun: int) -> None:
        """The training has begun. Time received before belongs to start-up."""
        self._begun = begun
        self.stacks, self._stacks_before = {}, {}
        self._before = {id: row._replace(ledger=0) for id, row in self._before.items()}
        self.rows = {id: row._replace(ledger=0) for id, row in self.rows.items()}

    def forget(self) -> None:
        """The ledger was reset: the nodes stay, and their counts become 0."""
        self._before = {}
        self.stacks, self._stacks_before = {}, {}
        self.rows = {id: row._replace(**EMPTY) for id, row in self.rows.items()}

    def _lane(self, name: str) -> int:
        return self._lane_ids.setdefault(name, self._base + len(self._lane_ids))

    def _put_lane(self, id: int, row: LaneRow, node: int) -> None:
        shown = self._shown(row.name)
        self.lanes[id] = LaneRow(id, "process", shown, False, row.alive, row.uses, node, row.since, row.waits)

    def _shown(self, lane: str) -> str:
        return self.name if lane == MAIN else f"{self.name}/{lane}"


def add_rows(one: NodeRow, other: NodeRow) -> NodeRow:
    """Sum of two rows of one node."""
    figures: dict[str, Any] = {column: getattr(one, column) + getattr(other, column) for column in SUMMED}
    figures |= {column: max(getattr(one, column), getattr(other, column)) for column in LARGEST}
    figures["min"] = min((part.min for part in (one, other) if part.calls), default=0)
    figures["histogram"] = pack(Counter(unpack(one.histogram)) + Counter(unpack(other.histogram)))
    return other._replace(**figures)

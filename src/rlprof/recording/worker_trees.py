"""Merges the call trees of worker processes into the session, with ids and lane names of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec

from rlprof.ledger.histogram import pack, unpack
from rlprof.ledger.sharing import with_ledger
from rlprof.session.schema import FIRST_OF_WORKERS

Row = tuple[Any, ...]
OperationId = Callable[[str, str], int]
"""Finds the id by name and category."""

Count = Annotated[int, msgspec.Meta(ge=0, le=2**56)]
"""Two years in ns. The sum of many such values still fits into 64 bits."""
Signed = Annotated[int, msgspec.Meta(ge=-(2**56), le=2**56)]
Place = Annotated[int, msgspec.Meta(ge=-1, lt=FIRST_OF_WORKERS)]
"""An id, or -1 for none."""

SUMMED = (4, 5, 6, 7, 8, 9, 10, 11, 18, 19)
"""Columns of a node's row that are summed when one process continues the lanes of another. See
rlprof.session.schema."""
CALLS, SHORTEST, LONGEST, HISTOGRAM = 4, 12, 13, 20
LARGEST = (13, 14, 15, 16, 17)
MAIN = "main"


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
    operations: list[tuple[Count, str, str]]
    lanes: list[tuple[Count, str, str, bool, bool, Count]]
    nodes: list[
        tuple[
            Place, Place, Place, Place, Count, Count, Count, Count, Count, Count, Signed, Count, Count, Count,
            Signed, Signed, Signed, Signed, Count, Count, bytes,
        ]
    ]  # fmt: skip

    def is_consistent(self) -> bool:
        """True if parents come first, on the lane of their children. Any process may have written the file."""
        lanes = {-1: None} | {row[0]: row[2] for row in self.nodes}
        seen = {-1}
        for id, parent, lane, *_ in self.nodes:
            if parent not in seen or lanes[parent] not in (None, lane):
                return False
            seen.add(id)
        return True


class MergedWorker:
    """The part of the session for one process, or for several of a kind, one after the other."""

    def __init__(self, number: int, name: str) -> None:
        self.name = name
        self.ended = False
        self.lanes: dict[int, Row] = {}
        self.rows: dict[int, Row] = {}
        """By id, parents first."""
        self._base = number * FIRST_OF_WORKERS
        self._before: dict[int, Row] = {}
        """Rows of earlier processes."""
        self._begun = 0
        self._lane_ids: dict[str, int] = {}
        self._node_ids: dict[tuple[int, int, int], int] = {}

    def put(self, dump: Dump, operation_id: OperationId) -> None:
        """Merge what the process has recorded so far."""
        # The driver's lane of a worker stands for the real driver, which is another process.
        lanes = {id: self._lane(name, alive, uses) for id, _, name, driver, alive, uses in dump.lanes if not driver}
        operations = {id: operation_id(name, category) for id, name, category in dump.operations}
        ids: dict[int, int] = {-1: -1}
        for row in dump.nodes:
            id, parent, lane, operation = row[:4]
            if lane not in lanes:
                continue
            key = (ids[parent], lanes[lane], operations.get(operation, -1))
            ids[id] = self._node_ids.setdefault(key, self._base + len(self._node_ids))
            placed = (ids[id], *key, *row[4:])
            if dump.begun != self._begun:
                placed = with_ledger(placed, 0)  # written before this process knew that the training has begun
            before = self._before.get(ids[id])
            self.rows[ids[id]] = placed if before is None else add_rows(before, placed)

    def end(self) -> None:
        self.ended = True
        self.lanes = {id: (*lane[:4], False, lane[5]) for id, lane in self.lanes.items()}

    def begin_again(self, name: str) -> None:
        """Another process continues these lanes."""
        self.name, self.ended = name, False
        self._before = dict(self.rows)
        self.lanes = {
            id: (id, "process", self._shown(lane), *self.lanes[id][3:]) for lane, id in self._lane_ids.items()
        }

    def begin_at(self, begun: int) -> None:
        """The training has begun. Time received before belongs to start-up."""
        self._begun = begun
        self._before = {id: with_ledger(row, 0) for id, row in self._before.items()}
        self.rows = {id: with_ledger(row, 0) for id, row in self.rows.items()}

    def forget(self) -> None:
        """The ledger was reset: the nodes stay, and their counts become 0."""
        self._before = {}
        self.rows = {id: (*row[:4], *([0] * 10), *([-1] * 4), 0, 0, b"") for id, row in self.rows.items()}

    def _lane(self, name: str, alive: bool, uses: int) -> int:
        id = self._lane_ids.setdefault(name, self._base + len(self._lane_ids))
        self.lanes[id] = (id, "process", self._shown(name), False, alive, uses)
        return id

    def _shown(self, lane: str) -> str:
        return self.name if lane == MAIN else f"{self.name}/{lane}"


def add_rows(one: Sequence[Any], other: Sequence[Any]) -> Row:
    """Sum of two rows of one node."""
    row = list(other)
    for column in SUMMED:
        row[column] += one[column]
    for column in LARGEST:
        row[column] = max(one[column], other[column])
    called = [part[SHORTEST] for part in (one, other) if part[CALLS]]
    row[SHORTEST] = min(called, default=0)
    row[HISTOGRAM] = pack(Counter(unpack(one[HISTOGRAM])) + Counter(unpack(other[HISTOGRAM])))
    return tuple(row)

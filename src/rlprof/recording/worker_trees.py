"""A worker process's call trees as part of the session: with ids of their own, and names that say whose they are."""

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
"""By name and category."""

Count = Annotated[int, msgspec.Meta(ge=0, le=2**56)]
"""In ns, two years; the sums of many of them still fit 64 bits."""
Signed = Annotated[int, msgspec.Meta(ge=-(2**56), le=2**56)]
Place = Annotated[int, msgspec.Meta(ge=-1, lt=FIRST_OF_WORKERS)]
"""An id, or -1 for none."""

SUMMED = (4, 5, 6, 7, 8, 9, 10, 11, 18, 19)
"""Columns of a node's row that add up where one process goes on for another; see rlprof.session.schema."""
CALLS, SHORTEST, LONGEST, HISTOGRAM = 4, 12, 13, 20
LARGEST = (13, 14, 15, 16, 17)
MAIN = "main"


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
    operations: list[tuple[Count, str, str]]
    lanes: list[tuple[Count, str, str, bool, bool, Count]]
    nodes: list[
        tuple[
            Place, Place, Place, Place, Count, Count, Count, Count, Count, Count, Signed, Count, Count, Count,
            Signed, Signed, Signed, Signed, Count, Count, bytes,
        ]
    ]  # fmt: skip

    def holds(self) -> bool:
        """Whether parents come first, on the lane of their children: whoever has written the file."""
        lanes = {-1: None} | {row[0]: row[2] for row in self.nodes}
        seen = {-1}
        for id, parent, lane, *_ in self.nodes:
            if parent not in seen or lanes[parent] not in (None, lane):
                return False
            seen.add(id)
        return True


class Graft:
    """The place of one process in the session, or of several of a kind, one after the other."""

    def __init__(self, number: int, name: str) -> None:
        self.name = name
        self.ended = False
        self.lanes: dict[int, Row] = {}
        self.rows: dict[int, Row] = {}
        """By id, parents first."""
        self._base = number * FIRST_OF_WORKERS
        self._before: dict[int, Row] = {}
        """What earlier processes left."""
        self._begun = 0
        self._lane_ids: dict[str, int] = {}
        self._node_ids: dict[tuple[int, int, int], int] = {}

    def put(self, dump: Dump, operation_id: OperationId) -> None:
        """What the process has recorded up to now."""
        # The lane on the driver's side stands for a driver that is elsewhere.
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
                placed = with_ledger(placed, 0)  # written before the training began, which is known by now
            before = self._before.get(ids[id])
            self.rows[ids[id]] = placed if before is None else together(before, placed)

    def end(self) -> None:
        self.ended = True
        self.lanes = {id: (*lane[:4], False, lane[5]) for id, lane in self.lanes.items()}

    def begin_again(self, name: str) -> None:
        """Another process goes on here."""
        self.name, self.ended = name, False
        self._before = dict(self.rows)
        self.lanes = {
            id: (id, "process", self._shown(lane), *self.lanes[id][3:]) for lane, id in self._lane_ids.items()
        }

    def begin_at(self, begun: int) -> None:
        """The training has begun: what was received before is start-up's."""
        self._begun = begun
        self._before = {id: with_ledger(row, 0) for id, row in self._before.items()}
        self.rows = {id: with_ledger(row, 0) for id, row in self.rows.items()}

    def forget(self) -> None:
        """The ledger has: the places stay, with nothing in them."""
        self._before = {}
        self.rows = {id: (*row[:4], *([0] * 10), *([-1] * 4), 0, 0, b"") for id, row in self.rows.items()}

    def _lane(self, name: str, alive: bool, uses: int) -> int:
        id = self._lane_ids.setdefault(name, self._base + len(self._lane_ids))
        self.lanes[id] = (id, "process", self._shown(name), False, alive, uses)
        return id

    def _shown(self, lane: str) -> str:
        return self.name if lane == MAIN else f"{self.name}/{lane}"


def together(one: Sequence[Any], other: Sequence[Any]) -> Row:
    """Two rows of one place."""
    row = list(other)
    for column in SUMMED:
        row[column] += one[column]
    for column in LARGEST:
        row[column] = max(one[column], other[column])
    called = [part[SHORTEST] for part in (one, other) if part[CALLS]]
    row[SHORTEST] = min(called, default=0)
    row[HISTOGRAM] = pack(Counter(unpack(one[HISTOGRAM])) + Counter(unpack(other[HISTOGRAM])))
    return tuple(row)

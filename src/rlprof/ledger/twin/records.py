"""The twin's records. core/data.h explains the fields."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rlprof.ledger.histogram import bucket_of, pack
from rlprof.ledger.rows import LaneRow, NodeRow, OperationRow

if TYPE_CHECKING:
    from rlprof.ledger.twin.span import Span

UNKNOWN = -1
LONGEST = 2**63 - 1


@dataclass(slots=True, eq=False)
class Operation:
    id: int
    name: str
    category: str
    on_device: bool
    category_given: bool
    spans: dict[tuple[bool, bool, bool | None], Span] = field(default_factory=dict)

    def row(self) -> OperationRow:
        return OperationRow(self.id, self.name, self.category)


@dataclass(slots=True, eq=False)
class Node:
    id: int
    lane: Lane
    parent: Node | None
    operation: Operation | None
    children: dict[int, Node] = field(default_factory=dict)
    calls: int = 0
    busy: int = 0
    self: int = 0
    shift: int = 0
    covered: int = 0
    overlap: int = 0
    waited: int = 0
    off_cpu: int = 0
    cost: int = 0
    min: int = LONGEST
    max: int = 0
    memory_peak: int = UNKNOWN
    memory_rise: int = UNKNOWN
    device_peak: int = UNKNOWN
    device_rise: int = UNKNOWN
    device_time: int = 0
    device_calls: int = 0
    durations: Counter[int] = field(default_factory=Counter)
    marked: tuple[int, int, int, int, int, int] = (0, 0, 0, 0, 0, 0)

    def ledger(self) -> int:
        return (self.self if self.lane.on_driver else 0) + self.shift

    def overlapped(self) -> int:
        if self.operation is None:
            return 0
        return self.overlap if self.lane.on_driver else self.self - self.waited - self.covered

    def marked_ledger(self) -> int:
        """Ledger time at the last iteration mark."""
        _, own, shift, *_ = self.marked
        return (own if self.lane.on_driver else 0) + shift

    def count_call(self, duration: int) -> None:
        self.calls += 1
        self.busy += duration
        self.min = min(self.min, duration)
        self.max = max(self.max, duration)
        self.durations[bucket_of(duration)] += 1

    def marks(self) -> tuple[int, int, int, int, int, int]:
        return self.calls, self.self, self.shift, self.overlapped(), self.waited, self.off_cpu

    def row(self) -> NodeRow:
        return NodeRow(
            id=self.id,
            parent=self.parent.id if self.parent else -1,
            lane=self.lane.id,
            operation=self.operation.id if self.operation else -1,
            ledger=self.ledger(),
            overlapped=self.overlapped(),
            min=0 if self.min == LONGEST else self.min,
            device_ns=self.device_time,
            histogram=pack(self.durations),
            **{name: getattr(self, name) for name in _SAME_IN_ROW},
        )

    def move_to(self, to: Node) -> None:
        """Everything but the place: see core/rename.c."""
        for name in _SUMS:
            setattr(to, name, getattr(to, name) + getattr(self, name))
        for name in _LARGEST:
            setattr(to, name, max(getattr(to, name), getattr(self, name)))
        to.min = min(to.min, self.min)
        to.durations.update(self.durations)
        calls, own, shift, overlapped, waited, off_cpu = (a + b for a, b in zip(to.marked, self.marked))
        to.marked = (calls, own, shift, overlapped, waited, off_cpu)
        self.reset()

    def reset(self) -> None:
        fresh = Node(self.id, self.lane, self.parent, self.operation, self.children)
        for name in self.__slots__:
            setattr(self, name, getattr(fresh, name))


_SUMS = (
    "self", "calls", "busy", "shift", "covered", "overlap", "waited", "off_cpu", "cost", "device_time", "device_calls",
)  # fmt: skip
_SAME_IN_ROW = (
    "calls", "busy", "self", "waited", "off_cpu", "cost", "max", "memory_peak", "memory_rise", "device_peak",
    "device_rise", "device_calls",
)  # fmt: skip
_LARGEST = ("max", "memory_peak", "memory_rise", "device_peak", "device_rise")


@dataclass(slots=True, eq=False)
class Entry:
    node: Node
    span: Span | None
    start: int
    memory_start: int = UNKNOWN
    memory_peak: int = UNKNOWN
    device_start: int = UNKNOWN
    device_peak: int = UNKNOWN
    device_event: Any = None

    @property
    def waits(self) -> bool:
        return self.span is not None and self.span.wait

    @property
    def tracks_memory(self) -> bool:
        return self.span is not None and self.span.track_memory


@dataclass(frozen=True, slots=True)
class Stood:
    node: Node
    left: int
    shift: int
    covered: int
    waited: int
    off_cpu: int
    cost: int


@dataclass(slots=True, eq=False)
class Pool:
    group: str
    trees: int = 0
    ended: dict[Lane, None] = field(default_factory=dict)
    """In the order in which they ended."""


@dataclass(slots=True, eq=False)
class Lane:
    id: int
    kind: str
    name: str
    on_driver: bool
    pool: Pool | None
    """None: a guest in another lane's tree."""
    stack: list[Entry] = field(default_factory=list)
    mark: int = 0
    left: int = 0
    stood: Stood | None = None
    """The innermost node, as it was at `left`; None where nothing of it has changed since."""
    suspended: bool = False
    idle_mark: int = 0
    host: Thread | None = None
    task: int | None = None
    uses: int = 0
    shared: bool = False

    @property
    def top(self) -> Entry:
        return self.stack[-1]

    def stand(self, node: Node) -> None:
        """Keep what the innermost node had when the last span ended: see core/core.h."""
        if self.stood is None or self.stood.node is not node or self.stood.left != self.left:
            self.stood = Stood(node, self.left, node.shift, node.covered, node.waited, node.off_cpu, node.cost)

    @property
    def open(self) -> bool:
        return len(self.stack) > 1

    @property
    def works(self) -> bool:
        return self.open and not self.top.waits

    def row(self) -> LaneRow:
        since = self.top.start if self.open else self.left
        waits = self.suspended or self.top.waits
        alive = self.host is not None
        return LaneRow(self.id, self.kind, self.name, self.on_driver, alive, self.uses, self.top.node.id, since, waits)


@dataclass(slots=True, eq=False)
class Thread:
    ident: int
    lane: Lane
    base: Lane
    bound: bool = False
    cpu_clock: int | None = None
    synced_wall: int = 0
    synced_cpu: int = 0
    working: bool = False
    own: bool = False
    own_only: Node | None = None
    between_steps: bool = False
    steps: int = 0
    shared: dict[str, Lane] = field(default_factory=dict)
    """Its lanes with guests, by group."""
    share_mark: int = 0
    cover_mark: int = 0

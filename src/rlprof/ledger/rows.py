"""Layout of every record that leaves a core: rows of `raw()`, and the packed journals.

Each layout is written here once, and once in the C core. The core passes its own layout to `check` when it is loaded;
the twin uses these types. Everything else refers to columns by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from struct import Struct
from typing import Any, NamedTuple, TypeVar

Row = TypeVar("Row", bound=tuple[Any, ...])


class OperationRow(NamedTuple):
    """One operation."""

    id: int
    name: str
    category: str


class LaneRow(NamedTuple):
    """One lane: see `rlprof.ledger.snapshot.Lane`."""

    id: int
    kind: str
    name: str
    on_driver: bool
    alive: bool
    uses: int
    node: int
    """The innermost node at this moment: the root of the lane if no span is open."""
    since: int
    """Start of its span; without an open span, the end of the last one."""
    waits: bool
    """That span waits for others, or the task is suspended."""


class NodeRow(NamedTuple):
    """One operation at one place of a lane's call tree: see `rlprof.ledger.snapshot.Node`. Times are ns, sizes bytes.

    The histogram stays the last column: a session stores it apart from the others.
    """

    id: int
    parent: int
    """-1: the root of a lane."""
    lane: int
    operation: int
    """-1: no span was open."""
    calls: int
    busy: int
    self: int
    ledger: int
    overlapped: int
    waited: int
    off_cpu: int
    cost: int
    min: int
    max: int
    memory_peak: int
    """-1: never tracked. So are the next three."""
    memory_rise: int
    device_peak: int
    device_rise: int
    device_ns: int
    device_calls: int
    histogram: bytes
    """Packed: see `rlprof.ledger.histogram`."""


class IterationMark(NamedTuple):
    """One iteration, or several merged ones. Iterations count from 0."""

    start: int
    end: int
    first: int
    last: int
    steps: int
    episodes: int


class IterationGain(NamedTuple):
    """What one node gained in the iterations of one mark. `iteration` is the mark's last one."""

    iteration: int
    node: int
    calls: int
    self: int
    ledger: int
    overlapped: int
    waited: int
    off_cpu: int


class TimelineEvent(NamedTuple):
    """One span that has ended."""

    start: int
    duration: int
    node: int
    depth: int


class SlowdownRecord(NamedTuple):
    """How one operation is slowed down, and what was measured of it, in shared memory: see core/records.h."""

    spin: float
    held: float
    sleep: float
    calls: int
    cpu: int
    wall: int
    added: int
    missed: int
    sampled: int
    progress: int


# One letter per field: `check` relies on it.
MARK = Struct("=qqIIqq")
GAIN = Struct("=IIQqqqqq")
EVENT = Struct("=qqII")
SLOWDOWN = Struct("=dddqqqqqqq")

_ROWS = {"operation": OperationRow._fields, "lane": LaneRow._fields, "node": NodeRow._fields}
_STRUCTS = {
    "mark": (IterationMark._fields, MARK),
    "gain": (IterationGain._fields, GAIN),
    "event": (TimelineEvent._fields, EVENT),
    "slowdown": (SlowdownRecord._fields, SLOWDOWN),
}


def unpack_marks(packed: bytes) -> Iterator[IterationMark]:
    return map(IterationMark._make, MARK.iter_unpack(packed))


def unpack_gains(packed: bytes) -> Iterator[IterationGain]:
    return map(IterationGain._make, GAIN.iter_unpack(packed))


def unpack_events(packed: bytes) -> Iterator[TimelineEvent]:
    return map(TimelineEvent._make, EVENT.iter_unpack(packed))


def with_types(row: type[Row], default: Any, **types: Any) -> type[Row]:
    """The same row with other types of its columns, which msgspec checks where rows come from outside."""
    make: Any = NamedTuple
    made: type[Row] = make(row.__name__, [(name, types.get(name, default)) for name in getattr(row, "_fields", ())])
    return made


def check(layout: Mapping[str, tuple[tuple[str, str, int], ...]]) -> None:
    """Raise ImportError if the C core that is being loaded has other layouts than those above.

    layout: by record, the name of each column; in a packed record also the code of its type and its offset.
    """
    expected = {name: tuple((column, "", 0) for column in columns) for name, columns in _ROWS.items()}
    for name, (fields, packed) in _STRUCTS.items():
        codes = packed.format[1:]
        offsets = (Struct("=" + codes[:place]).size for place in range(len(codes)))
        expected[name] = tuple(zip(fields, codes, offsets))
    for name in expected.keys() | layout.keys():
        if expected.get(name) != layout.get(name):
            raise ImportError(
                f"it was compiled from another version of rlprof (layout of {name}); install rlprof again"
            )

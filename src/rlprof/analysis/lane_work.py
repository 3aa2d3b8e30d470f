"""What did each lane do in the iterations? For every lane and place: work, CPU time, and the wall time it explains."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from rlprof.analysis.series import calls_inside, groups_of, own_share
from rlprof.ledger.catalogue import WAITS
from rlprof.ledger.hooks import group_of
from rlprof.ledger.snapshot import Lane, Snapshot, SpanCost
from rlprof.session.reader import Gain, IterationRow, Session

BATCHES = 20
"""Groups of neighbouring iterations: the number of values that an uncertainty is estimated from."""
WARM_UP = 3
"""First iterations that are ignored if there are enough others."""

DRIVER = "the driver"


@dataclass(frozen=True, slots=True)
class Piece:
    """One place of a lane's call tree, over the iterations of a batch. Times are in ns, without rlprof's cost."""

    operations: tuple[str, ...]
    """Path of operations, outermost first; empty if no span is open."""
    lane: str
    """Name of the lane. Tasks on the driver's thread belong to the driver."""
    group: str
    """Name of the group of similar lanes, such as the threads of a pool."""
    kind: str
    on_driver: bool
    work_ns: float
    """Time not waiting."""
    cpu_ns: float
    """CPU time within `work_ns`."""
    ledger_ns: float
    """The driver's wall time that this piece accounts for."""
    overlapped_ns: float
    """Work while the driver was busy with something else."""

    def plus(self, other: Piece) -> Piece:
        names = ("work_ns", "cpu_ns", "ledger_ns", "overlapped_ns")
        return replace(self, **{name: getattr(self, name) + getattr(other, name) for name in names})

    @property
    def idle_ns(self) -> float:
        """Time in which the driver waited here while no lane worked."""
        return max(0.0, self.ledger_ns - self.work_ns) if self.on_driver else 0.0

    @property
    def waits_for_others(self) -> bool:
        """True if a probe knows this operation to be a wait, even if no lane was seen working."""
        return bool(self.operations) and self.operations[-1] in WAITS


@dataclass(frozen=True, slots=True)
class IterationBatch:
    iterations: int
    wall_ns: float
    steps: int
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class Work:
    cores: int
    cpu_known: bool
    """If False, all work counts as CPU time."""
    batches: tuple[IterationBatch, ...]

    @cached_property
    def whole(self) -> IterationBatch:
        """All batches as one: which lane is the slowest is decided over all iterations, not at single moments."""
        return together(self.batches)

    @cached_property
    def without(self) -> tuple[IterationBatch, ...]:
        """The same without each batch in turn, to estimate the uncertainty."""
        places = range(len(self.batches))
        return tuple(together([*self.batches[:place], *self.batches[place + 1 :]]) for place in places)


def together(batches: Sequence[IterationBatch]) -> IterationBatch:
    sums: dict[tuple[str, tuple[str, ...]], Piece] = {}
    for batch in batches:
        for piece in batch.pieces:
            before = sums.get((piece.lane, piece.operations))
            sums[piece.lane, piece.operations] = piece if before is None else before.plus(piece)
    return IterationBatch(
        iterations=sum(batch.iterations for batch in batches),
        wall_ns=sum(batch.wall_ns for batch in batches),
        steps=sum(batch.steps for batch in batches),
        pieces=tuple(sums.values()),
    )


def work_of(session: Session) -> Work:
    """The iterations of a session without the first ones. No batches if the session has no iterations."""
    snapshot = session.snapshot()
    iterations: Sequence[IterationRow] = session.iterations()
    steady = [one for one in iterations if one.first >= WARM_UP]
    iterations = steady if 2 * len(steady) >= len(iterations) else iterations
    places = _places(snapshot)
    batches = (
        _batch(group, session.gains(group[0], group[-1]), places, session.cost)
        for group in groups_of(iterations, BATCHES)
    )
    return Work(session.info.cores, snapshot.cpu != "off", tuple(batches))


@dataclass(frozen=True, slots=True)
class _Place:
    operations: tuple[str, ...]
    lane: Lane
    parent: int | None


def _places(snapshot: Snapshot) -> dict[int, _Place]:
    found: dict[int, _Place] = {}
    for node in snapshot.nodes:  # parents come first
        above = found[node.parent].operations if node.parent is not None else ()
        own = (node.operation,) if node.operation is not None else ()
        found[node.id] = _Place((*above, *own), snapshot.lanes[node.lane], node.parent)
    return found


def _batch(
    iterations: Sequence[IterationRow], gains: Sequence[Gain], places: Mapping[int, _Place], cost: SpanCost
) -> IterationBatch:
    inside = calls_inside(gains, {id: place.parent for id, place in places.items()})
    sums: defaultdict[tuple[str, tuple[str, ...]], list[float]] = defaultdict(lambda: [0.0] * 4)
    lanes: dict[str, Lane] = {}
    for gain in gains:
        place = places.get(gain.node)
        if place is None or not (place.operations or place.lane.on_driver):
            continue  # time without a span on another thread is not known to be work
        lane = DRIVER if place.lane.on_driver else f"{place.lane.name} #{place.lane.id}"
        lanes[lane] = place.lane
        net = 1 - own_share(gain, inside[gain.node], cost)
        work = max(0, gain.self_ns - gain.waited_ns)
        # Time off the CPU is first waiting, then work that was held up.
        off_cpu = max(0, gain.off_cpu_ns - gain.waited_ns)
        figures = sums[lane, place.operations]
        for number, value in enumerate((work, max(0, work - off_cpu), gain.ledger_ns, gain.overlapped_ns)):
            figures[number] += net * value
    pieces = [
        Piece(operations, lane, group_of(lanes[lane].name), lanes[lane].kind, lanes[lane].on_driver, *figures)
        for (lane, operations), figures in sums.items()
    ]
    return IterationBatch(
        iterations=sum(one.last - one.first + 1 for one in iterations),
        wall_ns=sum(one.wall_ns for one in iterations),
        steps=sum(one.steps for one in iterations),
        pieces=tuple(pieces),
    )

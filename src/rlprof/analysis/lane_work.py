"""Who did what in the iterations? Of every lane and place, the time it worked, its CPU time, and what waited for it."""

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
"""Of neighbouring iterations: so many values an uncertainty is estimated from."""
WARM_UP = 3
"""Iterations that do not count, where there are enough others."""

DRIVER = "the driver"


@dataclass(frozen=True, slots=True)
class Piece:
    """One place of a lane's call tree, over the iterations of a batch. Times are ns, rlprof's own taken out."""

    operations: tuple[str, ...]
    """From the outermost to its own; none where no span is open."""
    lane: str
    """Tasks on the driver's thread are the driver's."""
    group: str
    """Lanes of one make, as the threads of a pool."""
    kind: str
    on_driver: bool
    work_ns: float
    """Not waiting."""
    cpu_ns: float
    """Of that."""
    ledger_ns: float
    """The driver's wall time that it is accountable for."""
    overlapped_ns: float
    """Worked while the driver was busy with something else."""

    def plus(self, other: Piece) -> Piece:
        """The same place over more iterations."""
        return replace(
            self,
            work_ns=self.work_ns + other.work_ns,
            cpu_ns=self.cpu_ns + other.cpu_ns,
            ledger_ns=self.ledger_ns + other.ledger_ns,
            overlapped_ns=self.overlapped_ns + other.overlapped_ns,
        )

    @property
    def idle_ns(self) -> float:
        """The driver waited here, and nobody was at work."""
        return max(0.0, self.ledger_ns - self.work_ns) if self.on_driver else 0.0

    @property
    def waits_for_others(self) -> bool:
        """A probe knows that it is no work of its own, even where nobody was seen at work."""
        return bool(self.operations) and self.operations[-1] in WAITS


@dataclass(frozen=True, slots=True)
class Batch:
    """Neighbouring iterations."""

    iterations: int
    wall_ns: float
    steps: int
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class Work:
    cores: int
    cpu_known: bool
    """Else the CPU time of every piece is taken for all of its work."""
    batches: tuple[Batch, ...]

    @cached_property
    def whole(self) -> Batch:
        """All of them as one: which lane is the slowest is a question about all of it, not of single moments."""
        return together(self.batches)

    @cached_property
    def without(self) -> tuple[Batch, ...]:
        """The same without each of them in turn, to see how sure it is."""
        return tuple(
            together([*self.batches[:place], *self.batches[place + 1 :]]) for place in range(len(self.batches))
        )


def together(batches: Sequence[Batch]) -> Batch:
    """Several as one."""
    sums: dict[tuple[str, tuple[str, ...]], Piece] = {}
    for batch in batches:
        for piece in batch.pieces:
            before = sums.get((piece.lane, piece.operations))
            sums[piece.lane, piece.operations] = piece if before is None else before.plus(piece)
    return Batch(
        iterations=sum(batch.iterations for batch in batches),
        wall_ns=sum(batch.wall_ns for batch in batches),
        steps=sum(batch.steps for batch in batches),
        pieces=tuple(sums.values()),
    )


def work_of(session: Session, most: int = BATCHES) -> Work:
    """The iterations of a session, but for the first ones. No batches where it has none."""
    snapshot = session.snapshot()
    turns: list[IterationRow] = session.iterations()
    steady = [turn for turn in turns if turn.first >= WARM_UP]
    turns = steady if 2 * len(steady) >= len(turns) else turns
    places = _places(snapshot)
    batches = []
    for group in groups_of(turns, most):
        gains = session.gains(group[0], group[-1])
        batches.append(_batch(group, gains, places, session.cost))
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


def _batch(turns: Sequence[IterationRow], gains: Sequence[Gain], places: Mapping[int, _Place], cost: SpanCost) -> Batch:
    inside = calls_inside(gains, {id: place.parent for id, place in places.items()})
    sums: defaultdict[tuple[str, tuple[str, ...]], list[float]] = defaultdict(lambda: [0.0] * 4)
    lanes: dict[str, Lane] = {}
    for gain in gains:
        place = places.get(gain.node)
        if place is None or not (place.operations or place.lane.on_driver):
            continue  # another thread without a span is nobody's work
        lane = DRIVER if place.lane.on_driver else f"{place.lane.name} #{place.lane.id}"
        lanes[lane] = place.lane
        net = 1 - own_share(gain, inside[gain.node], cost)
        work = max(0, gain.self_ns - gain.waited_ns)
        # Off the CPU is first what it waited, then what it wanted to work and could not.
        off_cpu = max(0, gain.off_cpu_ns - gain.waited_ns)
        figures = sums[lane, place.operations]
        for number, value in enumerate((work, max(0, work - off_cpu), gain.ledger_ns, gain.overlapped_ns)):
            figures[number] += net * value
    pieces = [
        Piece(operations, lane, group_of(lanes[lane].name), lanes[lane].kind, lanes[lane].on_driver, *figures)
        for (lane, operations), figures in sums.items()
    ]
    return Batch(
        iterations=sum(turn.last - turn.first + 1 for turn in turns),
        wall_ns=sum(turn.wall_ns for turn in turns),
        steps=sum(turn.steps for turn in turns),
        pieces=tuple(pieces),
    )

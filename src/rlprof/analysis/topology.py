"""How long would the iterations take if operations were faster? It depends on how the lanes work together.

The work of a lane shrinks by what is saved in it. A wait only shrinks if the lane that it waits for gets faster:

- serial: the driver does everything. Its time shrinks by what is saved.
- pool: other lanes work while the driver waits for the last of them. The wait shrinks like the busiest lane; if lanes
  share the GIL or too few cores, like their CPU time; if they work one after the other, like their parts.
- async: other lanes work beside the driver. The slowest decides: the driver, the busiest lane, the cores or the GIL.

The result is never less than the CPU time divided by the cores.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from rlprof.analysis.breakdown import UNATTRIBUTED
from rlprof.analysis.lane_work import IterationBatch, Piece, Work

NEGLIGIBLE = 0.01
"""Fraction of the wall time. Less work on other lanes is ignored."""
THROUGHOUT = 0.8
"""Fraction of the time in which any lane works. A lane that works for so much of it does not wait for requests. Nor do
lanes that do so much of their work while the driver is busy."""
BESIDE = 0.5
"""Fraction of the driver's busy time. A pool that works on request hardly works in it."""
EXPLAINED = 0.9
"""Fraction of a wait. If a lane works for so much of it, the driver waits for that lane."""
ONE_AT_A_TIME = 1.15
"""Threads that together get no more than this many cores of CPU time, though they want more, share the GIL."""
SATURATED = 0.85
"""Fraction of the cores."""
HELD_UP = 0.1
"""Fraction of the work that was off the CPU: something held it up."""

Saving = Mapping[str, float]
"""By operation, including what it calls: the fraction of its time that remains, 0.5 for twice as fast. A key made by
`own` is about the own time of an operation only."""


@dataclass(frozen=True, slots=True)
class Group:
    """Similar lanes other than the driver."""

    name: str
    kind: str
    lanes: int
    limit: str
    """What limits them together: `the GIL`, `the cores` or nothing."""


@dataclass(frozen=True, slots=True)
class Topology:
    model: str
    """`serial`, `pool` or `async`."""
    cores: int
    cpu_known: bool
    groups: tuple[Group, ...]
    limit: str
    """What limits all lanes together if they are async; `one another` if some were held up without need."""


def topology(work: Work) -> Topology:
    pieces, wall = work.whole.pieces, work.whole.wall_ns
    others = [piece for piece in pieces if not piece.on_driver]
    model = "serial" if sum(piece.work_ns for piece in others) < NEGLIGIBLE * wall else _together(pieces, wall)
    found = []
    for name, group in _by(others, lambda piece: piece.group).items():
        limit = _limit(group, sum(piece.ledger_ns for piece in group), work) if model == "pool" else ""
        found.append(Group(name, group[0].kind, len({piece.lane for piece in group}), limit))
    limit = (_limit(pieces, wall, work) or _in_the_way(pieces, wall, work)) if model == "async" else ""
    return Topology(model, work.cores, work.cpu_known, tuple(found) if model != "serial" else (), limit)


def _together(pieces: Sequence[Piece], wall: float) -> str:
    """`async` if the driver hardly waits, or waits for a lane that works all the time; else `pool`."""
    others = [piece for piece in pieces if not piece.on_driver]
    if sum(piece.overlapped_ns for piece in others) > THROUGHOUT * sum(piece.work_ns for piece in others):
        return "async"
    busy = sum(piece.work_ns for piece in pieces if piece.on_driver)
    idle = sum(piece.idle_ns for piece in pieces if piece.waits_for_others)
    for lane in _by(others, lambda piece: piece.lane).values():
        beside, works = sum(piece.overlapped_ns for piece in lane), sum(piece.work_ns for piece in lane)
        if beside > BESIDE * busy and works > THROUGHOUT * (wall - idle):
            return "async"
    return "pool"


def _limit(pieces: Sequence[Piece], during_ns: float, work: Work) -> str:
    """What these lanes share, if anything held them up."""
    wanted = sum(piece.work_ns for piece in pieces)
    used = sum(piece.cpu_ns for piece in pieces)
    in_threads = sum(piece.cpu_ns for piece in pieces if piece.kind != "process")
    if not work.cpu_known or during_ns <= 0 or used > (1 - HELD_UP) * wanted or wanted < ONE_AT_A_TIME * during_ns:
        return ""
    if used >= SATURATED * work.cores * during_ns:
        return "the cores"
    together = in_threads == used and SATURATED * during_ns <= used <= ONE_AT_A_TIME * during_ns
    return "the GIL" if together else ""


def _in_the_way(pieces: Sequence[Piece], wall: float, work: Work) -> str:
    """If the CPU time of one lane explains the whole time, the others had time to be off the CPU."""
    lanes = _by(pieces, lambda piece: piece.lane).values()
    explained = max(sum(piece.cpu_ns for piece in lane) for lane in lanes) > EXPLAINED * wall
    return "one another" if work.cpu_known and explained else ""


def left(piece: Piece, saving: Saving) -> float:
    """The fraction of a piece's time that remains. The innermost operation in `saving` decides."""
    innermost = piece.operations[-1] if piece.operations else UNATTRIBUTED
    if own(innermost) in saving:
        return saving[own(innermost)]
    return next((saving[name] for name in reversed(piece.operations) if name in saving), 1.0)


def own(operation: str) -> str:
    """Key of a saving in an operation itself, without what it calls; of `unattributed` for time without a span."""
    return f"{operation} itself"


@dataclass(frozen=True, slots=True)
class Predicted:
    wall_ns: float
    bound: str
    """What limits the result, if anything but the work itself does."""


def predict(batch: IterationBatch, how: Topology, saving: Saving, stays: bool = True) -> Predicted:
    """The wall time of a batch with the given savings.

    stays: chooses one of two answers where the model leaves something open. Async: time without a span on the slowest
    lane stays; else it shrinks with the rest. Pool: the last lane decides; else every lane's part counts.
    """
    found = (_predict_async if how.model == "async" else _predict_waiting)(batch, how, saving, stays)
    if not how.cpu_known:
        return found
    by_cores = sum(piece.cpu_ns * left(piece, saving) for piece in batch.pieces) / how.cores
    return Predicted(by_cores, "the cores") if by_cores > found.wall_ns else found


def _predict_waiting(batch: IterationBatch, how: Topology, saving: Saving, stays: bool) -> Predicted:
    driver = [piece for piece in batch.pieces if piece.on_driver]
    saved = sum(piece.ledger_ns * (1 - left(piece, saving)) for piece in driver)
    limits = {group.name: group.limit for group in how.groups}
    others = [piece for piece in batch.pieces if not piece.on_driver]
    held_up = _held_up(driver, others, saving) if how.cpu_known else 0.0
    for name, group in _by(others, lambda piece: piece.group).items():
        waited_for = sum(piece.ledger_ns + held_up * piece.overlapped_ns for piece in group)
        before = max(_bounds(group, limits.get(name, ""), how.cores, {}).values())
        after = max(_bounds(group, limits.get(name, ""), how.cores, saving).values())
        in_turn = sum((piece.ledger_ns + held_up * piece.overlapped_ns) * left(piece, saving) for piece in group)
        # The last lane decides if it takes that long. Else the lanes work one after the other, or it is unknown.
        last = waited_for * after / before if before > EXPLAINED * waited_for else in_turn
        saved += waited_for - (last if stays else in_turn)
    return Predicted(batch.wall_ns - saved, "")


def _held_up(driver: Sequence[Piece], others: Sequence[Piece], saving: Saving) -> float:
    """Fraction of the others' work beside the driver in which they held the core or the GIL that it wanted."""
    beside = sum(piece.overlapped_ns for piece in others)
    off_cpu = sum((piece.work_ns - piece.cpu_ns) * left(piece, saving) for piece in driver)
    return min(1.0, off_cpu / beside) if beside else 0.0


def _predict_async(batch: IterationBatch, how: Topology, saving: Saving, stays: bool) -> Predicted:
    before = _bounds(batch.pieces, how.limit, how.cores, {})
    after = _bounds(batch.pieces, how.limit, how.cores, saving)
    slowest = max(before, key=before.__getitem__)
    if not before[slowest]:
        return Predicted(batch.wall_ns, "")
    if stays:  # the slowest lane was busy all the time, so its time without a span is known; that of others is not
        after[slowest] += max(0.0, batch.wall_ns - before[slowest])
    decides = max(after, key=after.__getitem__)
    scale = 1.0 if stays else batch.wall_ns / before[slowest]
    return Predicted(after[decides] * scale, decides)


def _bounds(pieces: Iterable[Piece], limit: str, cores: int, saving: Saving) -> dict[str, float]:
    """Lower bounds for lanes that work at the same time: the time of each lane, and of what they share."""
    times: defaultdict[str, float] = defaultdict(float)
    total = 0.0
    for piece in pieces:
        # A lane that was held up by the others has worked only as long as it computed.
        work = piece.cpu_ns if limit else piece.work_ns
        own = work if piece.waits_for_others else work + piece.idle_ns
        times[piece.lane] += own * left(piece, saving)
        total += piece.cpu_ns * left(piece, saving)
    shared = {"the GIL": total, "the cores": total / cores}
    return {**times, limit: shared[limit]} if limit in shared else dict(times)


def _by(pieces: Iterable[Piece], key: Callable[[Piece], str]) -> dict[str, list[Piece]]:
    found: defaultdict[str, list[Piece]] = defaultdict(list)
    for piece in pieces:
        found[key(piece)].append(piece)
    return dict(found)

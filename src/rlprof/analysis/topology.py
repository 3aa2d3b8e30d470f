"""How long would the iterations take if operations were faster? By how the lanes work together.

What one lane does is shorter by what is saved in it. What waits is shorter only as what it waits for is, so:

- serial: the driver does everything; its time is less what is saved.
- pool: others work while the driver waits, until the last of them is done. The wait shrinks as the busiest lane does;
  where they share the GIL or too few cores, as their CPU time; where they work one after the other, as their parts.
- async: others work beside the driver. The slowest of all decides: the driver, the busiest lane, the cores, the GIL.

Never is it less than the CPU time divided by the cores.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from rlprof.analysis.lane_work import IterationBatch, Piece, Work

APART = 0.01
"""Of the wall time: less than that is nothing."""
THROUGHOUT = 0.8
"""Of the time in which anybody works: a lane that works in so much of it does not wait to be told to. Nor do lanes that
do so much of their work while the driver is busy."""
BESIDE = 0.5
"""Of the driver's busy time: a pool that is told to work and waited for hardly works in it."""
EXPLAINED = 0.9
"""Of a wait: a lane that works in so much of it is what is waited for."""
ONE_AT_A_TIME = 1.15
"""Threads that want to work, and together get no more CPU time than so much of the time, share the GIL."""
SATURATED = 0.85
"""Of the cores."""
HELD_UP = 0.1
"""Of the work: off the CPU, so that somebody was in the way."""

Saving = Mapping[str, float]
"""By operation, with all that it calls: the part of its time that is left, 0.5 for twice as fast."""


@dataclass(frozen=True, slots=True)
class Group:
    """Lanes of one make, that are not the driver's."""

    name: str
    kind: str
    lanes: int
    limit: str
    """What they share: `the GIL`, `the cores` or nothing."""


@dataclass(frozen=True, slots=True)
class Topology:
    model: str
    """`serial`, `pool` or `async`."""
    cores: int
    cpu_known: bool
    groups: tuple[Group, ...]
    limit: str
    """Of all together, where they are async; `one another` where some were held up without need."""


def topology(work: Work) -> Topology:
    """As the whole session shows it."""
    pieces, wall = work.whole.pieces, work.whole.wall_ns
    others = [piece for piece in pieces if not piece.on_driver]
    model = "serial" if sum(piece.work_ns for piece in others) < APART * wall else _together(pieces, wall)
    found = []
    for name, group in _by(others, lambda piece: piece.group).items():
        limit = _limit(group, sum(piece.ledger_ns for piece in group), work) if model == "pool" else ""
        found.append(Group(name, group[0].kind, len({piece.lane for piece in group}), limit))
    limit = (_limit(pieces, wall, work) or _in_the_way(pieces, wall, work)) if model == "async" else ""
    return Topology(model, work.cores, work.cpu_known, tuple(found) if model != "serial" else (), limit)


def _together(pieces: Sequence[Piece], wall: float) -> str:
    """`async` where the driver hardly waits, or for one that works all the time; else `pool`."""
    others = [piece for piece in pieces if not piece.on_driver]
    if sum(piece.overlapped_ns for piece in others) > THROUGHOUT * sum(piece.work_ns for piece in others):
        return "async"
    busy = sum(piece.work_ns for piece in pieces if piece.on_driver)
    nobody = sum(piece.idle_ns for piece in pieces if piece.waits_for_others)
    for lane in _by(others, lambda piece: piece.lane).values():
        beside, works = sum(piece.overlapped_ns for piece in lane), sum(piece.work_ns for piece in lane)
        if beside > BESIDE * busy and works > THROUGHOUT * (wall - nobody):
            return "async"
    return "pool"


def _limit(pieces: Sequence[Piece], during_ns: float, work: Work) -> str:
    """What these lanes share, if anything was in their way."""
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
    """Where what one lane computes explains the whole time, others that were off the CPU meanwhile had time to be."""
    lanes = _by(pieces, lambda piece: piece.lane).values()
    explained = max(sum(piece.cpu_ns for piece in lane) for lane in lanes) > EXPLAINED * wall
    return "one another" if work.cpu_known and explained else ""


def left(piece: Piece, saving: Saving) -> float:
    """The part of a piece's time that is left: what is said of the innermost operation."""
    return next((saving[name] for name in reversed(piece.operations) if name in saving), 1.0)


@dataclass(frozen=True, slots=True)
class Predicted:
    wall_ns: float
    bound: str
    """What it cannot be faster than, where that is what decides."""


def predict(batch: IterationBatch, how: Topology, saving: Saving, stays: bool = True) -> Predicted:
    """The wall time of a batch with something saved.

    stays: where the model leaves something open, the first of two answers. Async: what the slowest lane does without a
    span stays its own; else it shrinks with the rest. Pool: the last lane decides; else everybody's part counts.
    """
    if how.model == "async":
        found = _predict_async(batch, how, saving, stays)
    else:
        found = _predict_waiting(batch, how, saving, stays)
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
        # The last one decides, if it takes that long. Else they work one after the other, or this cannot be told.
        last = waited_for * after / before if before > EXPLAINED * waited_for else in_turn
        saved += waited_for - (last if stays else in_turn)
    return Predicted(batch.wall_ns - saved, "")


def _held_up(driver: Sequence[Piece], others: Sequence[Piece], saving: Saving) -> float:
    """Of what others did while the driver was busy, the part in which it wanted a core or the GIL and they had it."""
    beside = sum(piece.overlapped_ns for piece in others)
    off_cpu = sum((piece.work_ns - piece.cpu_ns) * left(piece, saving) for piece in driver)
    return min(1.0, off_cpu / beside) if beside else 0.0


def _predict_async(batch: IterationBatch, how: Topology, saving: Saving, stays: bool) -> Predicted:
    before = _bounds(batch.pieces, how.limit, how.cores, {})
    after = _bounds(batch.pieces, how.limit, how.cores, saving)
    slowest = max(before, key=before.__getitem__)
    if not before[slowest]:
        return Predicted(batch.wall_ns, "")
    if stays:  # it is the slowest one's time that was all spent, so what it did without a span is known; not of others
        after[slowest] += max(0.0, batch.wall_ns - before[slowest])
    decides = max(after, key=after.__getitem__)
    scale = 1.0 if stays else batch.wall_ns / before[slowest]
    return Predicted(after[decides] * scale, decides)


def _bounds(pieces: Iterable[Piece], limit: str, cores: int, saving: Saving) -> dict[str, float]:
    """What lanes that work at the same time cannot be faster than: each of them, and what they share."""
    times: defaultdict[str, float] = defaultdict(float)
    total = 0.0
    for piece in pieces:
        # Who was held up by others of these lanes has worked as long as it computed.
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

"""What would it bring if operations were faster? Steps per second, with an interval, and which operation to begin with.

An operation is meant with all that it calls, wherever it is called. The interval is of the iterations of this session,
left out batch by batch (jackknife), and reaches over what the model leaves open.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rlprof.analysis.comparison import Interval
from rlprof.analysis.jackknife import jackknife
from rlprof.analysis.topology import Saving, Topology, left, predict, topology
from rlprof.analysis.work import Batch, Work
from rlprof.errors import RlprofError
from rlprof.ledger.catalogue import BESIDE_TRAINING, WAITS

ALPHA = 0.05
LEAST_BATCHES = 4
"""Below, no interval is given."""


@dataclass(frozen=True, slots=True)
class Prediction:
    saving: dict[str, float]
    """By operation: the part of its time that would be left."""
    gain: Interval
    """In steps per second: 0.4 for 40 % more."""
    rate: Interval | None
    """Steps per second; None where nothing counts them."""
    bound: str
    """What would then be the limit, where that decides."""


@dataclass(frozen=True, slots=True)
class Priority:
    """One line of the ranking."""

    operation: str
    share: float
    """Of the wall time, with what it calls, as the ledger has it: 0 to 1."""
    twice: Prediction
    free: Prediction
    holds: tuple[str, ...]
    """Operations below it that are in the ranking too."""


@dataclass(frozen=True, slots=True)
class WhatIf:
    topology: Topology
    iterations: int
    rate: Interval | None
    """Steps per second as they are."""
    asked: Prediction | None
    ranking: tuple[Priority, ...]
    """The largest gain at twice the speed first."""


def what_if(work: Work, saving: Saving, least_share: float = 0.001) -> WhatIf:
    """Predict what was asked, and rank all operations that have at least such a share of the work."""
    if not work.batches or not sum(batch.wall_ns for batch in work.batches):
        raise RlprofError("the session has no iterations, so nothing can be predicted from it; see docs/spans.md")
    how = topology(work)
    names = operations_of(work, least_share)
    ranking = [_priority(work, how, name, names) for name in names]
    ranking.sort(key=lambda one: (-one.twice.gain.estimate, -one.share))
    return WhatIf(
        topology=how,
        iterations=sum(batch.iterations for batch in work.batches),
        rate=_rate(work, _wall),
        asked=prediction(work, how, saving) if saving else None,
        ranking=tuple(ranking),
    )


def operations_of(work: Work, least_share: float = 0.0) -> list[str]:
    """Those that are worked or idled in, by name."""
    wall = sum(batch.wall_ns for batch in work.batches)
    times: dict[str, float] = {}
    for batch in work.batches:
        for piece in batch.pieces:
            for name in set(piece.operations):
                times[name] = times.get(name, 0.0) + piece.work_ns + piece.idle_ns
    no_work = BESIDE_TRAINING | WAITS
    return sorted(name for name, ns in times.items() if ns and ns >= least_share * wall and name not in no_work)


def prediction(work: Work, how: Topology, saving: Saving) -> Prediction:
    def faster(batches: Sequence[Batch], stays: bool) -> float:
        return sum(predict(batch, how, saving, stays).wall_ns for batch in batches)

    def gain(stays: bool) -> Interval:
        return _jackknife(work, lambda batches: _wall(batches) / max(1.0, faster(batches, stays)))

    estimates = [gain(stays) for stays in (True, False)]
    rates = [_rate(work, lambda batches, stays=stays: max(1.0, faster(batches, stays))) for stays in (True, False)]  # type: ignore[misc]
    bounds = [predict(batch, how, saving).bound for batch in work.batches]
    return Prediction(
        saving=dict(saving),
        gain=_less_one(_over(estimates)),
        rate=_over([rate for rate in rates if rate is not None]) if rates[0] is not None else None,
        bound=max(set(bounds), key=bounds.count),
    )


def _priority(work: Work, how: Topology, name: str, names: Sequence[str]) -> Priority:
    wall = _wall(work.batches)
    pieces = [piece for batch in work.batches for piece in batch.pieces]
    inside = [piece for piece in pieces if left(piece, {name: 0.0}) == 0.0]
    below = {inner for piece in inside for inner in piece.operations[piece.operations.index(name) + 1 :]}
    return Priority(
        operation=name,
        share=sum(piece.ledger_ns for piece in inside) / wall,
        twice=prediction(work, how, {name: 0.5}),
        free=prediction(work, how, {name: 0.0}),
        holds=tuple(other for other in names if other in below and other != name),
    )


def _wall(batches: Sequence[Batch]) -> float:
    return sum(batch.wall_ns for batch in batches)


def _rate(work: Work, wall: Callable[[Sequence[Batch]], float]) -> Interval | None:
    """Steps per second over such a wall time."""
    if not all(batch.steps > 0 for batch in work.batches):
        return None
    return _jackknife(work, lambda batches: 1e9 * sum(batch.steps for batch in batches) / wall(batches))


def _jackknife(work: Work, of: Callable[[Sequence[Batch]], float]) -> Interval:
    """Of a positive figure that all batches together have. On its logarithm, so that no end is below zero."""
    logs = jackknife(work.batches, lambda batches: math.log(of(batches)), ALPHA, LEAST_BATCHES)
    low, high = (None if end is None else math.exp(end) for end in (logs.low, logs.high))
    return Interval(math.exp(logs.estimate), low, high)


def _over(intervals: Sequence[Interval]) -> Interval:
    """The first one's estimate, and an interval that reaches over all."""
    lows = [one.low for one in intervals if one.low is not None]
    highs = [one.high for one in intervals if one.high is not None]
    return Interval(intervals[0].estimate, min(lows, default=None), max(highs, default=None))


def _less_one(interval: Interval) -> Interval:
    low, high = (None if end is None else end - 1 for end in (interval.low, interval.high))
    return Interval(interval.estimate - 1, low, high)

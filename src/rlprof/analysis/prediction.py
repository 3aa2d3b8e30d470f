"""What would faster operations bring? Predicts steps per second with an interval, and ranks all operations.

An operation includes everything that it calls, wherever it is called. The interval comes from the iterations of this
session, left out batch by batch (jackknife), and covers both answers where the model leaves two open.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from rlprof.analysis.inference import ALPHA, Interval, left_out
from rlprof.analysis.lane_work import IterationBatch, Work
from rlprof.analysis.topology import Saving, Topology, left, predict, topology
from rlprof.errors import RlprofError
from rlprof.ledger.catalogue import BESIDE_TRAINING, WAITS

LEAST_BATCHES = 4
"""Batches that an interval needs."""


@dataclass(frozen=True, slots=True)
class Prediction:
    saving: dict[str, float]
    """The part of its time that would be left of each operation."""
    gain: Interval
    """Gain in steps per second: 0.4 for 40 % more."""
    rate: Interval | None
    """Steps per second; None if the session has no step counts."""
    bound: str
    """What would then limit the training; empty if nothing else does."""


@dataclass(frozen=True, slots=True)
class Priority:
    operation: str
    share: float
    """Share of the training time, including what it calls: 0 to 1."""
    twice: Prediction
    free: Prediction
    holds: tuple[str, ...]
    """Operations that it calls and that are in the ranking, too."""


@dataclass(frozen=True, slots=True)
class WhatIf:
    topology: Topology
    iterations: int
    rate: Interval | None
    """Recorded steps per second."""
    asked: Prediction | None
    ranking: tuple[Priority, ...]
    """Sorted by the gain at twice the speed, largest first."""


def what_if(work: Work, saving: Saving, least_share: float = 0.001) -> WhatIf:
    """Predict the requested speedup, and rank all operations with at least this share of the work."""
    if not work.whole.wall_ns:
        mark = "If the probes find none in your training, mark them with rlprof.get_profiler().iteration()."
        raise RlprofError(f"The session has no iterations, so nothing can be predicted. {mark}")
    how = topology(work)
    names = operations_of(work, least_share)
    ranking = [_priority(work, how, name, names) for name in names]
    ranking.sort(key=lambda one: (-one.twice.gain.estimate, -one.share))
    return WhatIf(
        topology=how,
        iterations=work.whole.iterations,
        rate=_rate(work, lambda batch: batch.wall_ns),
        asked=prediction(work, how, saving) if saving else None,
        ranking=tuple(ranking),
    )


def operations_of(work: Work, least_share: float = 0.0) -> list[str]:
    """Names of the operations that have work or idle time."""
    wall = work.whole.wall_ns
    times: dict[str, float] = {}
    for piece in work.whole.pieces:
        for name in set(piece.operations):
            times[name] = times.get(name, 0.0) + piece.work_ns + piece.idle_ns
    no_work = BESIDE_TRAINING | WAITS
    return sorted(name for name, ns in times.items() if ns and ns >= least_share * wall and name not in no_work)


def prediction(work: Work, how: Topology, saving: Saving) -> Prediction:
    def faster(batch: IterationBatch, stays: bool) -> float:
        return max(1.0, predict(batch, how, saving, stays).wall_ns)

    gains, rates = [], []
    for answer in (partial(faster, stays=True), partial(faster, stays=False)):
        gains.append(_interval(work, lambda batch, answer=answer: batch.wall_ns / answer(batch)))  # type: ignore[misc]
        rates.append(_rate(work, answer))
    return Prediction(
        saving=dict(saving),
        gain=_over(gains).map(lambda ratio: ratio - 1),
        rate=_over([rate for rate in rates if rate is not None]) if rates[0] is not None else None,
        bound=predict(work.whole, how, saving).bound,
    )


def _priority(work: Work, how: Topology, name: str, names: Sequence[str]) -> Priority:
    inside = [piece for piece in work.whole.pieces if left(piece, {name: 0.0}) == 0.0]
    below = {inner for piece in inside for inner in piece.operations[piece.operations.index(name) + 1 :]}
    return Priority(
        operation=name,
        share=sum(piece.ledger_ns for piece in inside) / work.whole.wall_ns,
        twice=prediction(work, how, {name: 0.5}),
        free=prediction(work, how, {name: 0.0}),
        holds=tuple(other for other in names if other in below and other != name),
    )


def _rate(work: Work, wall: Callable[[IterationBatch], float]) -> Interval | None:
    if not all(batch.steps > 0 for batch in work.batches):
        return None
    return _interval(work, lambda batch: 1e9 * batch.steps / wall(batch))


def _interval(work: Work, of: Callable[[IterationBatch], float]) -> Interval:
    """Interval of a positive figure, by the jackknife on its logarithm, so that no end is below zero."""
    if len(work.batches) < LEAST_BATCHES:
        return Interval(of(work.whole), None, None)
    logs = [math.log(of(batch)) for batch in (work.whole, *work.without)]
    return left_out(logs[0], logs[1:], ALPHA).map(math.exp)


def _over(intervals: Sequence[Interval]) -> Interval:
    """The first estimate, with an interval that covers all."""
    lows = [one.low for one in intervals if one.low is not None]
    highs = [one.high for one in intervals if one.high is not None]
    return Interval(intervals[0].estimate, min(lows, default=None), max(highs, default=None))

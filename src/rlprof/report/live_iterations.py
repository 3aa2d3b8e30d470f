"""Iterations of a running training: the ledger's packed rows as figures with names."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rlprof.analysis.breakdown import UNATTRIBUTED
from rlprof.ledger.rows import unpack_gains, unpack_marks
from rlprof.session.records import Flush


@dataclass(frozen=True, slots=True)
class Point:
    """One iteration, or several neighbours."""

    iteration: int
    """Counted from 1. If iterations come faster than they can be written, the last of `iterations`."""
    iterations: int
    time: float
    """Unix time of the end, in seconds."""
    seconds: float
    steps: int
    episodes: int
    steps_per_second: float | None
    ledger: dict[str, float]
    """Seconds of wall time by operation, with `unattributed` and rlprof's own cost. They sum to `seconds`."""


class Points:
    """Makes points of batches, and remembers which operation each node belongs to."""

    def __init__(self) -> None:
        self._operations: dict[int, str] = {}

    def of(self, batch: Flush) -> Iterator[Point]:
        names = {row.id: row.name for row in batch.raw["operations"]}
        for row in batch.raw["nodes"]:
            self._operations.setdefault(row.id, names.get(row.operation, UNATTRIBUTED))
        ledger: defaultdict[int, Counter[str]] = defaultdict(Counter)
        for gain in unpack_gains(batch.gains):
            ledger[gain.iteration][self._operations.get(gain.node, UNATTRIBUTED)] += gain.ledger
        now = time.time()
        for start, end, first, last, steps, episodes in unpack_marks(batch.iterations):
            seconds = (end - start - batch.between.get(last, 0)) / 1e9
            yield Point(
                iteration=last + 1,
                iterations=last - first + 1,
                time=now - (batch.time - end) / 1e9,
                seconds=seconds,
                steps=steps,
                episodes=episodes,
                steps_per_second=steps / seconds if steps and seconds else None,
                ledger={name: spent / 1e9 for name, spent in ledger[last].most_common()},
            )


def merge_neighbours(points: Sequence[Point], most: int) -> Iterator[Point]:
    """At most this many points. If there are more, neighbours are merged."""
    size = max(1, -(-len(points) // most))
    for start in range(0, len(points), size):
        group = points[start : start + size]
        ledger: Counter[str] = Counter()
        for point in group:
            for name, seconds in point.ledger.items():
                ledger[name] += seconds  # type: ignore[assignment]  # a counter of seconds
        seconds, steps = sum(point.seconds for point in group), sum(point.steps for point in group)
        yield Point(
            iteration=group[-1].iteration,
            iterations=sum(point.iterations for point in group),
            time=group[-1].time,
            seconds=seconds,
            steps=steps,
            episodes=sum(point.episodes for point in group),
            steps_per_second=steps / seconds if steps and seconds else None,
            ledger=dict(ledger),
        )

"""How large a trace will be, from what its warm-up took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from rlprof.trace.columns import ABSENT, Trace
from rlprof.trace.kinds import STEP_PREFIX, Kind


@dataclass
class StepSizes:
    """Steps are of two kinds: those in which an iteration begins have a rollout in them. What one takes in a trace is
    known of those that were warmed up with; of a kind that was not, its duration tells."""

    bytes: dict[bool, list[float]] = field(default_factory=lambda: {False: [], True: []})
    seconds: dict[bool, list[float]] = field(default_factory=lambda: {False: [], True: []})
    rest: float = 0.0
    """Bytes that belong to no step."""
    packing: float = 1.0
    """Bytes of a file for one of its text."""

    def of_kind(self, begins: bool) -> float | None:
        known = self.bytes[begins]
        if known:
            return sum(known) / len(known)
        other, mine, its = self.bytes[not begins], self.seconds[begins], self.seconds[not begins]
        if not other or not mine or not its:
            return None
        return (sum(other) / len(other)) * (sum(mine) / len(mine)) / max(1e-9, sum(its) / len(its))

    def predict(self, steps: Sequence[bool]) -> float | None:
        """Of a file with these steps, by whether an iteration begins in them; None where nothing tells."""
        sizes = [self.of_kind(begins) for begins in steps]
        if any(size is None for size in sizes):
            return None
        return (self.rest + sum(size for size in sizes if size is not None)) * self.packing


def bytes_of_steps(trace: Trace) -> tuple[list[int], int]:
    """Of a trace that was read with its places: what the events of each step take, in their order, and all others."""
    rows = trace.rows(Kind.ANNOTATION)
    steps = sorted(
        (int(trace.start[row]), int(trace.end[row]))
        for row, name in zip(rows, trace.names(rows))
        if name.startswith(STEP_PREFIX)
    )
    starts = np.array([start for start, _ in steps], np.int64)
    ends = np.array([end for _, end in steps], np.int64)
    place = np.searchsorted(starts, trace.start, "right") - 1
    inside = (trace.start != ABSENT) & (place >= 0)
    inside &= trace.start < ends[np.maximum(place, 0)] if len(ends) else False
    sizes = np.bincount(place[inside], trace.size[inside] + 2, len(steps))  # a comma and a line's end between events
    return [int(size) for size in sizes], trace.unpacked - int(sizes.sum())


def begins_next(history: Sequence[bool], count: int) -> list[bool]:
    """Whether an iteration begins in each of the next steps: as often as it did."""
    begun = [number for number, begins in enumerate(history) if begins]
    if not begun:
        return [False] * count
    if len(begun) == 1:
        period = len(history) if begun[0] == 0 else max(begun[0], len(history) - begun[0])
    else:
        period = round((begun[-1] - begun[0]) / (len(begun) - 1))
    return [(len(history) + number - begun[-1]) % max(1, period) == 0 for number in range(count)]

"""Predicts the size of a trace from its warm-up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from rlprof.trace.columns import ABSENT, Trace
from rlprof.trace.kinds import STEP_PREFIX, Kind


@dataclass
class StepSizes:
    """There are two kinds of steps: those in which an iteration begins contain a rollout. The warm-up shows how many
    bytes a step of its kind takes. For the other kind the size is estimated from the duration."""

    bytes: dict[bool, list[float]] = field(default_factory=lambda: {False: [], True: []})
    seconds: dict[bool, list[float]] = field(default_factory=lambda: {False: [], True: []})
    rest: float = 0.0
    """Bytes that belong to no step."""
    packing: float = 1.0
    """Compressed bytes per byte of text."""

    def of_kind(self, begins: bool) -> float | None:
        known = self.bytes[begins]
        if known:
            return sum(known) / len(known)
        other, mine, its = self.bytes[not begins], self.seconds[begins], self.seconds[not begins]
        if not other or not mine or not its:
            return None
        return (sum(other) / len(other)) * (sum(mine) / len(mine)) / max(1e-9, sum(its) / len(its))

    def predict(self, steps: Sequence[bool]) -> float | None:
        """Size of a file with these steps; True stands for a step in which an iteration begins. None if unknown."""
        sizes = [self.of_kind(begins) for begins in steps]
        if any(size is None for size in sizes):
            return None
        return (self.rest + sum(size for size in sizes if size is not None)) * self.packing


def bytes_of_steps(trace: Trace) -> tuple[list[int], int]:
    """Bytes of the events in each step, in order, and of all other events. The trace must be read with places."""
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
    sizes = np.bincount(place[inside], trace.size[inside] + 2, len(steps))  # a comma and a newline between events
    return [int(size) for size in sizes], trace.unpacked - int(sizes.sum())


def begins_next(history: Sequence[bool], count: int) -> list[bool]:
    """True for each of the next steps in which an iteration begins, if they go on as regularly as before."""
    begun = [number for number, begins in enumerate(history) if begins]
    if not begun:
        return [False] * count
    if len(begun) == 1:
        period = len(history) if begun[0] == 0 else max(begun[0], len(history) - begun[0])
    else:
        period = round((begun[-1] - begun[0]) / (len(begun) - 1))
    return [(len(history) + number - begun[-1]) % max(1, period) == 0 for number in range(count)]

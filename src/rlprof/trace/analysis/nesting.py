"""Which event of a thread was called by which, and what each took without those it called."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rlprof.trace.columns import Rows, Trace


@dataclass(frozen=True)
class Nesting:
    """Of some rows of a trace, in the order of thread and time. All arrays are as long as `rows`."""

    rows: Rows
    parent: NDArray[np.int64]
    """A position in `rows`; -1: none of these called it."""
    depth: NDArray[np.int64]
    self_time: NDArray[np.int64]
    overlaps: int
    """Events that end after the one they began in: no thread can do that."""


def nest(trace: Trace, rows: Rows) -> Nesting:
    """Level by level, since a loop over millions of events would be most of the work."""
    lanes, lane = np.unique(trace.process[rows].astype(np.int64) << 32 | trace.thread[rows], return_inverse=True)
    start, duration = trace.start[rows], trace.duration[rows]
    order = np.lexsort((-duration, start, lane))
    rows, lane, start = rows[order], lane[order], start[order]
    end = start + duration[order]
    depth = _depths(lane, len(lanes), start, end)
    parent = np.full(len(rows), -1, np.int64)
    above = np.flatnonzero(depth == 0)
    level = 1
    while len(above):
        here = np.flatnonzero(depth == level)
        if len(here):
            parent[here] = above[np.searchsorted(above, here) - 1]
        above, level = here, level + 1
    child = np.flatnonzero(parent >= 0)
    caller = parent[child]
    inside = np.clip(np.minimum(end[child], end[caller]) - start[child], 0, None)
    called = np.bincount(caller, inside, len(rows)).astype(np.int64) if len(child) else np.zeros(len(rows), np.int64)
    overlaps = int(np.count_nonzero(end[child] > end[caller]))
    return Nesting(rows, parent, depth, np.maximum(0, end - start - called), overlaps)


def _depths(lane: NDArray[np.int64], lanes: int, start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many of the events before an event on its lane have not ended when it starts."""
    end = np.maximum(end, start + 1)  # one that took no time was still called by what it began in
    depth = np.empty(len(lane), np.int64)
    bounds = np.searchsorted(lane, np.arange(lanes + 1))
    for first, last in pairwise(bounds):
        ended = np.searchsorted(np.sort(end[first:last]), start[first:last], "right")
        depth[first:last] = np.maximum(0, np.arange(last - first) - ended)
    return depth

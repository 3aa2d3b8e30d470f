"""Which event of a thread called which, and the time of each without its callees."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rlprof.trace.columns import Rows, Trace


@dataclass(frozen=True)
class Nesting:
    """Nesting of some rows of a trace, ordered by thread and time. All arrays are as long as `rows`."""

    rows: Rows
    parent: NDArray[np.int64]
    """Position of the caller in `rows`; -1 if none of them called it."""
    depth: NDArray[np.int64]
    self_time: NDArray[np.int64]
    overlaps: int
    """Number of events that end after their caller, which no thread can do."""


def nest(trace: Trace, rows: Rows) -> Nesting:
    """Computed level by level, because a loop over millions of events would take too long."""
    lanes, lane = np.unique(trace.lanes(rows), return_inverse=True)
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
    """Number of earlier events on the same lane that have not ended when an event starts."""
    end = np.maximum(end, start + 1)  # an event without duration was still called by the event around it
    depth = np.empty(len(lane), np.int64)
    bounds = np.searchsorted(lane, np.arange(lanes + 1))
    for first, last in pairwise(bounds):
        ended = np.searchsorted(np.sort(end[first:last]), start[first:last], "right")
        depth[first:last] = np.maximum(0, np.arange(last - first) - ended)
    return depth

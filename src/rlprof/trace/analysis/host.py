"""The thread that trains, its steps, and the window of time that is analysed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rlprof.trace.analysis.intervals import Intervals
from rlprof.trace.columns import Rows, Trace
from rlprof.trace.kinds import DEVICE_WORK, STEP_PREFIX, Kind

_HOST = (Kind.OPERATOR, Kind.ANNOTATION, Kind.PYTHON, Kind.RUNTIME)

WAITS = re.compile(r"Synchronize|^(cuda|hip)Memcpy(?!.*Async)|^cuMemcpy(?!.*Async)")
"""Runtime calls in which the host waits for the device."""

LOADS = re.compile(r"DataLoader.*__next__|^data_loading$|^batch_preparation$")
"""Annotations in which the host waits for data, torch's own and rlprof's."""


@dataclass(frozen=True)
class Step:
    name: str
    start: int
    end: int


@dataclass(frozen=True)
class Host:
    """Events of the thread that trains."""

    trace: Trace
    lane: tuple[int, int]
    """Its process and thread, as indices of the trace's texts; (-1, -1) if there is none."""

    @classmethod
    def of(cls, trace: Trace) -> Host:
        """The thread with the steps. Without steps, the thread that operators or Python kept busy longest."""
        annotations = trace.rows(Kind.ANNOTATION)
        steps = annotations[[name.startswith(STEP_PREFIX) for name in trace.names(annotations)]]
        for rows in (steps, trace.rows(Kind.OPERATOR), annotations, trace.rows(*_HOST)):
            if len(rows):
                return cls(trace, _busiest(trace, rows))
        return cls(trace, (-1, -1))

    def rows(self, *kinds: Kind) -> Rows:
        found = self.trace.rows(*kinds)
        process, thread = self.lane
        here = (self.trace.process[found] == process) & (self.trace.thread[found] == thread)
        mine: Rows = found[here]
        return mine

    @cached_property
    def steps(self) -> list[Step]:
        """Steps in order of time."""
        trace, rows = self.trace, self.rows(Kind.ANNOTATION)
        found = [
            Step(name, int(trace.start[row]), int(trace.end[row]))
            for row, name in zip(rows, trace.names(rows))
            if name.startswith(STEP_PREFIX)
        ]
        return sorted(found, key=lambda step: step.start)

    @cached_property
    def window(self) -> tuple[int, int]:
        """From the first step to the end of the last. Without steps, the whole trace."""
        if self.steps:
            return self.steps[0].start, max(step.end for step in self.steps)
        rows = self.trace.rows(*_HOST, *DEVICE_WORK)
        if not len(rows):
            return 0, 0
        return int(self.trace.start[rows].min()), int(self.trace.end[rows].max())

    @cached_property
    def waits(self) -> Intervals:
        """Time while the host waits for the device."""
        return self._during(self.trace.matching(self.rows(Kind.RUNTIME), WAITS))

    @cached_property
    def loads(self) -> Intervals:
        """Time while the host waits for data."""
        return self._during(self.trace.matching(self.rows(Kind.ANNOTATION, Kind.OPERATOR), LOADS))

    def _during(self, rows: Rows) -> Intervals:
        return Intervals.of(self.trace.start[rows], self.trace.end[rows])


def _busiest(trace: Trace, rows: Rows) -> tuple[int, int]:
    lanes, lane = np.unique(trace.lanes(rows), return_inverse=True)
    busy = np.bincount(lane, trace.duration[rows].astype(np.float64) + 1)
    chosen = int(lanes[np.argmax(busy)])
    return chosen >> 32, chosen & 0xFFFFFFFF

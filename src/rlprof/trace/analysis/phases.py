"""Time of the host by innermost annotation, and whether host or device was busy meanwhile."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlprof.trace.analysis.devices import Device
from rlprof.trace.analysis.host import Host
from rlprof.trace.analysis.intervals import Intervals, joined
from rlprof.trace.analysis.launches import launches_of
from rlprof.trace.analysis.nesting import nest
from rlprof.trace.kinds import STEP_PREFIX, Kind

UNMARKED = "(unmarked)"
"""Name for time inside a step but inside no other annotation."""


@dataclass(frozen=True)
class Phase:
    """Times in ns. `cpu`, `gpu`, `overlapped` and `idle` add up to `wall`."""

    name: str
    calls: int
    wall: int
    """Time while the phase was the innermost annotation."""
    cpu: int
    """Only the host was busy."""
    gpu: int
    """A device was busy while the host waited for it or for data."""
    overlapped: int
    """Both were busy."""
    idle: int
    """Neither was busy."""
    launched: int
    """Time of the kernels and copies that were launched in the phase, whenever they ran."""


@dataclass(frozen=True)
class Segments:
    """The host's time, cut where the innermost annotation changes."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    label: NDArray[np.int64]
    """Index of the innermost annotation in `names`."""
    names: list[str]
    calls: list[int]

    def at(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """The labels of these instants; -1 outside the window."""
        if not len(self.start):
            return np.full(len(times), -1, np.int64)
        place = np.searchsorted(self.start, times, "right") - 1
        inside = (place >= 0) & (times < self.end[np.maximum(place, 0)])
        return np.where(inside, self.label[np.maximum(place, 0)], -1)


def segments_of(host: Host) -> Segments:
    trace, (low, high) = host.trace, host.window
    rows = host.rows(Kind.ANNOTATION)
    found = nest(trace, rows)
    texts, label = np.unique(trace.name[found.rows], return_inverse=True)
    names = [trace.texts.name(int(index)) for index in texts]
    is_step = np.array([name.startswith(STEP_PREFIX) for name in names], bool)
    names.append(UNMARKED)
    unmarked = len(names) - 1
    label = np.where(is_step[label], unmarked, label) if len(label) else label
    calls = np.bincount(label, minlength=len(names)) if len(label) else np.zeros(len(names), np.int64)
    above = np.where(found.parent >= 0, label[found.parent], unmarked) if len(label) else label
    start, end = trace.start[found.rows], trace.end[found.rows]
    # If several begin at once, the innermost comes last; if several end at once, the outermost comes last.
    time = np.concatenate([[low], start, end])
    order = np.lexsort(
        (
            np.concatenate([[0], found.depth, -found.depth]),
            np.concatenate([[0], np.ones(len(start)), np.zeros(len(end))]),
            time,
        )
    )
    time = np.clip(time[order], low, high)
    after = np.concatenate([[unmarked], label, above])[order]
    until = np.append(time[1:], high)
    real = until > time
    return Segments(time[real], until[real], after[real], names, [*calls[:-1].tolist(), 0])


def phases_of(host: Host, devices: list[Device], segments: Segments) -> list[Phase]:
    """Phases, longest first, including those without time of their own that launched something."""
    busy = joined(device.busy for device in devices)
    waiting = host.waits | host.loads
    count = len(segments.names)

    def summed(of: Intervals) -> NDArray[np.int64]:
        inside = of.within(segments.start, segments.end)
        return np.bincount(segments.label, inside, count).astype(np.int64)

    wall = np.bincount(segments.label, segments.end - segments.start, count).astype(np.int64)
    both, gpu, idle = summed(busy - waiting), summed(busy & waiting), summed(waiting - busy)
    launched = _launched(host, devices, segments)
    return sorted(
        (
            Phase(
                name=segments.names[i],
                calls=segments.calls[i],
                wall=int(wall[i]),
                cpu=int(wall[i] - both[i] - gpu[i] - idle[i]),
                gpu=int(gpu[i]),
                overlapped=int(both[i]),
                idle=int(idle[i]),
                launched=int(launched[i]),
            )
            for i in range(count)
            if wall[i] or launched[i]
        ),
        key=lambda phase: (-phase.wall, phase.name),
    )


def _launched(host: Host, devices: list[Device], segments: Segments) -> NDArray[np.int64]:
    trace = host.trace
    rows = np.concatenate([np.zeros(0, np.int64), *(device.rows for device in devices)])
    calls = launches_of(trace, rows)
    rows, calls = rows[calls >= 0], calls[calls >= 0]
    label = segments.at(trace.start[calls])
    found = np.bincount(label[label >= 0], trace.duration[rows[label >= 0]], len(segments.names))
    return found.astype(np.int64)

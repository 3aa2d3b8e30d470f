"""Why a GPU is idle: what the host was doing in each instant in which it had nothing to run.

What ends a gap on a device is a kernel or a copy that a call on the host has launched. Until that call began, the
device waits for the host: while the host waits for the device itself (it could have launched ahead), while it waits for
data, or while it works. From the call on, the work is on its way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlprof.trace.analysis.devices import Device
from rlprof.trace.analysis.host import Host
from rlprof.trace.analysis.intervals import Intervals
from rlprof.trace.analysis.launches import launches_of
from rlprof.trace.columns import Trace


@dataclass(frozen=True)
class Idle:
    """Of one device, inside a window. The five parts are all of it."""

    total: Intervals
    launching: Intervals
    """Work is launched and has not begun."""
    data: Intervals
    """The host waits for data."""
    sync: Intervals
    """The host waits for the device, and has launched nothing further."""
    host: Intervals
    """The host works, and has launched nothing."""
    ending: Intervals
    """Nothing is launched any more before the window ends."""


def idle_of(host: Host, device: Device, window: tuple[int, int]) -> Idle:
    inside = Intervals.one(*window)
    total = inside - device.busy
    launching, ending = _launching(host.trace, device, total)
    waiting = total - launching - ending
    data = waiting & host.loads
    sync = (waiting - data) & host.waits
    return Idle(total, launching, data, sync, waiting - data - sync, ending)


def _launching(trace: Trace, device: Device, total: Intervals) -> tuple[Intervals, Intervals]:
    """Of each gap, the part after the launch of what ends it; and the gaps that nothing ends."""
    order = np.argsort(trace.start[device.rows], kind="stable")
    rows = device.rows[order]
    starts = trace.start[rows]
    place = np.searchsorted(starts, total.end)
    ended = place < len(rows)
    ended[ended] &= starts[place[ended]] == total.end[ended]
    next_row = rows[np.minimum(place, len(rows) - 1)] if len(rows) else np.zeros(len(place), np.int64)
    calls = launches_of(trace, next_row)
    called = np.where(calls >= 0, trace.start[np.maximum(calls, 0)], total.end)
    began = np.clip(called, total.start, total.end)
    return (
        Intervals.of(began[ended], total.end[ended]),
        Intervals.of(total.start[~ended], total.end[~ended]),
    )

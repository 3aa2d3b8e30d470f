"""Why a GPU is idle: what the host did while the GPU had nothing to run.

A gap on a device ends with a kernel or a copy that a call on the host launched. Before that call, the device waits for
the host, which waits for the device itself (it could have launched ahead), waits for data, or is busy. After the call,
the work was launched but has not started.
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
    """Idle time of one device inside a window, in five parts that add up to it."""

    total: Intervals
    launching: Intervals
    """Work was launched but has not started."""
    data: Intervals
    """The host waits for data."""
    sync: Intervals
    """The host waits for the device and has launched nothing more."""
    host: Intervals
    """The host is busy and has launched nothing."""
    ending: Intervals
    """Nothing more is launched before the window ends."""


def idle_of(host: Host, device: Device, window: tuple[int, int]) -> Idle:
    total = Intervals.one(*window) - device.busy
    launching, ending = _launching(host.trace, device, total)
    waiting = total - launching - ending
    data = waiting & host.loads
    sync = (waiting - data) & host.waits
    return Idle(total, launching, data, sync, waiting - data - sync, ending)


def _launching(trace: Trace, device: Device, total: Intervals) -> tuple[Intervals, Intervals]:
    """The part of each gap after the launch that ends the gap, and the gaps that no launch ends."""
    rows = device.rows[np.argsort(trace.start[device.rows], kind="stable")]
    starts = trace.start[rows]
    place = np.searchsorted(starts, total.end)
    ended = place < len(rows)
    ended[ended] &= starts[place[ended]] == total.end[ended]
    next_row = rows[np.minimum(place, len(rows) - 1)] if len(rows) else np.zeros(len(place), np.int64)
    calls = launches_of(trace, next_row)
    called = np.where(calls >= 0, trace.start[np.maximum(calls, 0)], total.end)
    began = np.clip(called, total.start, total.end)
    return Intervals.of(began[ended], total.end[ended]), Intervals.of(total.start[~ended], total.end[~ended])

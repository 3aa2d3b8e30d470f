"""When each GPU is busy, and with what."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlprof.trace.analysis.intervals import Intervals
from rlprof.trace.columns import Rows, Trace
from rlprof.trace.kinds import DEVICE_WORK, Kind


@dataclass(frozen=True)
class Device:
    number: int
    name: str
    """Product name; empty if the trace lacks it."""
    rows: Rows
    """Rows of its kernels, copies and fills."""
    busy: Intervals
    """Time while any of them runs."""
    kernels: Intervals
    copies: Intervals


def devices_of(trace: Trace) -> list[Device]:
    """Devices that did something, by number."""
    rows = trace.rows(*DEVICE_WORK)
    number = trace.arg("device").at(rows)
    for process in np.unique(trace.process[rows[number < 0]]):  # older traces have the device as a process
        found = trace.texts[int(process)]
        number[(number < 0) & (trace.process[rows] == process)] = found if isinstance(found, int) and found >= 0 else 0
    return [_device(trace, int(found), rows[number == found]) for found in np.unique(number)]


def _device(trace: Trace, number: int, rows: Rows) -> Device:
    def during(*kinds: Kind) -> Intervals:
        mine = rows[np.isin(trace.kind[rows], kinds)]
        return Intervals.of(trace.start[mine], trace.end[mine])

    return Device(
        number, _name(trace, number), rows, during(*DEVICE_WORK), during(Kind.KERNEL), during(Kind.COPY, Kind.FILL)
    )


def _name(trace: Trace, number: int) -> str:
    properties = trace.header.get("deviceProperties")
    for device in properties if isinstance(properties, list) else ():
        if isinstance(device, dict) and device.get("id") == number:
            return str(device.get("name", ""))
    return ""

"""Peaks of torch's memory, if the trace has recorded allocations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlprof.trace.analysis.phases import Segments
from rlprof.trace.columns import Trace
from rlprof.trace.kinds import Kind

_CPU = 0
"""Number of the `Device Type` in c10."""


@dataclass(frozen=True, slots=True)
class MemoryPeak:
    device: str
    """`CPU`, `GPU 0`."""
    allocated: int
    """Bytes at the peak."""
    reserved: int | None
    """Bytes in torch's own cache; None on a CPU."""
    phase: str
    """The innermost annotation at the peak; empty outside the window."""
    changes: int
    """Number of allocations and releases."""
    largest: int
    """The largest single allocation."""


def memory_of(trace: Trace, segments: Segments) -> list[MemoryPeak]:
    rows = trace.rows(Kind.MEMORY)
    allocated = trace.arg("Total Allocated").at(rows)
    rows, allocated = rows[allocated >= 0], allocated[allocated >= 0]
    kind, number = trace.arg("Device Type").at(rows, _CPU), trace.arg("Device Id").at(rows)
    found = []
    for device in np.unique(np.stack([kind, number]), axis=1).T:
        here = (kind == device[0]) & (number == device[1])
        mine, total = rows[here], allocated[here]
        top = int(np.argmax(total))
        reserved = int(trace.arg("Total Reserved").at(mine).max())
        label = int(segments.at(trace.start[mine[top : top + 1]])[0])
        found.append(
            MemoryPeak(
                device="CPU" if device[0] == _CPU else f"GPU {device[1]}",
                allocated=int(total[top]),
                reserved=reserved if device[0] != _CPU and reserved >= 0 else None,
                phase=segments.names[label] if label >= 0 else "",
                changes=len(mine),
                largest=max(0, int(trace.arg("Bytes", "bytes").at(mine, 0).max())),
            )
        )
    return found

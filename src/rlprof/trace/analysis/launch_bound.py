"""Kernels that a device runs faster than the host can launch them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlprof.trace.analysis.devices import Device
from rlprof.trace.analysis.launches import launches_of
from rlprof.trace.columns import Trace
from rlprof.trace.kinds import Kind


@dataclass(frozen=True, slots=True)
class LaunchBound:
    """A kernel is launch-bound if it found its device idle and took less time than the call that launched it."""

    kernels: int
    """Number of kernels whose launch is in the trace."""
    bound: int
    total: int
    """Time of the launch-bound kernels in ns."""
    launch: int
    """Median time of a launching call in ns."""
    kernel: int
    """Median time of a kernel in ns."""
    names: tuple[tuple[str, int], ...]
    """The most frequent launch-bound kernels, with their number of calls."""


def launch_bound(trace: Trace, devices: list[Device]) -> LaunchBound | None:
    """None if the trace has no kernels or no launches."""
    rows, dry = [], []
    for device in devices:
        mine = device.rows[trace.kind[device.rows] == Kind.KERNEL]
        rows.append(mine)
        dry.append(np.isin(trace.start[mine], device.busy.start))
    if not rows:
        return None
    kernels, idle_before = np.concatenate(rows), np.concatenate(dry)
    calls = launches_of(trace, kernels)
    known = calls >= 0
    if not known.any():
        return None
    kernels, calls, idle_before = kernels[known], calls[known], idle_before[known]
    bound = idle_before & (trace.duration[kernels] < trace.duration[calls])
    names, count = np.unique(trace.name[kernels[bound]], return_counts=True)
    most = np.argsort(-count, kind="stable")[:5]
    return LaunchBound(
        kernels=len(kernels),
        bound=int(np.count_nonzero(bound)),
        total=int(trace.duration[kernels[bound]].sum()),
        launch=int(np.median(trace.duration[calls])),
        kernel=int(np.median(trace.duration[kernels])),
        names=tuple((trace.texts.name(int(names[i])), int(count[i])) for i in most),
    )

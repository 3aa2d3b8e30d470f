"""The parts of each step of a trace."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlprof.trace.analysis.calls import Calls
from rlprof.trace.analysis.devices import Device, devices_of
from rlprof.trace.analysis.host import LOADS, Host, Step
from rlprof.trace.analysis.idle import idle_of
from rlprof.trace.analysis.intervals import Times
from rlprof.trace.analysis.phases import segments_of
from rlprof.trace.columns import Trace
from rlprof.trace.kinds import Kind

DATA = "data_loading"


@dataclass(frozen=True)
class Parts:
    """By name, one value per step."""

    ns: dict[str, NDArray[np.float64]]
    calls: dict[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Steps:
    path: str
    ns: NDArray[np.float64]
    """Time of each step."""
    marked: bool
    """True if the profiler marked steps; otherwise the whole trace is one step."""
    phases: Parts
    """Phases, which add up to the step."""
    idle: Parts
    """Why the busiest device was idle. Empty without a device."""
    operators: Parts
    """Self time of operators on the host."""
    kernels: Parts
    """Time of kernels on the device, in the step that launched them."""


def steps_of(trace: Trace) -> Steps:
    host = Host.of(trace)
    steps = host.steps or [Step("", *host.window)]
    devices = devices_of(trace)
    calls = Calls(trace, devices)
    nesting = calls.nesting
    operators = np.flatnonzero(trace.kind[nesting.rows] == Kind.OPERATOR)
    operator_rows = nesting.rows[operators]
    rows, launches, _ = calls.launched
    kernels = trace.kind[rows] == Kind.KERNEL
    rows, launches = rows[kernels], launches[kernels]
    when = np.where(launches >= 0, trace.start[np.maximum(launches, 0)], trace.start[rows])
    return Steps(
        path=trace.path,
        ns=np.array([step.end - step.start for step in steps], np.float64),
        marked=bool(host.steps),
        phases=_phases(host, steps),
        idle=_idle(host, devices, steps),
        operators=_parts(trace, steps, operator_rows, trace.start[operator_rows], nesting.self_time[operators]),
        kernels=_parts(trace, steps, rows, when, trace.duration[rows]),
    )


def phase_name(name: str) -> str:
    """One name for the same work: a DataLoader's name includes its iterator's class, which depends on its workers."""
    return DATA if LOADS.search(name) else name


def _parts(trace: Trace, steps: list[Step], rows: Times, when: Times, time: Times) -> Parts:
    step = _step_of(steps, when)
    rows, time, step = rows[step >= 0], time[step >= 0], step[step >= 0]
    names, label = np.unique(trace.name[rows], return_inverse=True)
    place = label * len(steps) + step
    size = len(names) * len(steps)
    ns = np.bincount(place, time, size).reshape(len(names), len(steps)).astype(np.float64)
    calls = np.bincount(place, minlength=size).reshape(len(names), len(steps)).astype(np.float64)
    texts = [trace.texts.name(int(index)) for index in names]
    return _merged(texts, ns, calls)


def _phases(host: Host, steps: list[Step]) -> Parts:
    segments = segments_of(host)
    count = len(segments.names)
    ns = np.zeros((count, len(steps)))
    calls = np.zeros((count, len(steps)))
    for number, step in enumerate(steps):
        inside = np.minimum(segments.end, step.end) - np.maximum(segments.start, step.start)
        ns[:, number] = np.bincount(segments.label, np.maximum(0, inside), count)
        calls[:, number] = np.bincount(segments.label, inside > 0, count)
    used = [i for i in range(count) if ns[i].any()]
    return _merged([phase_name(segments.names[i]) for i in used], ns[used], calls[used])


def _idle(host: Host, devices: list[Device], steps: list[Step]) -> Parts:
    if not devices:
        return Parts({}, {})
    device = max(devices, key=lambda device: device.busy.total)
    why = idle_of(host, device, host.window)
    parts = {"launching": why.launching, "data": why.data, "sync": why.sync, "host": why.host, "ending": why.ending}
    ns = {name: part.within(*_bounds(steps)).astype(np.float64) for name, part in parts.items()}
    return Parts(ns, {name: np.ones(len(values)) for name, values in ns.items()})  # idle time has no calls


def _bounds(steps: list[Step]) -> tuple[Times, Times]:
    return np.array([step.start for step in steps], np.int64), np.array([step.end for step in steps], np.int64)


def _step_of(steps: list[Step], when: Times) -> NDArray[np.int64]:
    start, end = _bounds(steps)
    place = np.searchsorted(start, when, "right") - 1
    return np.where((place >= 0) & (when < end[np.maximum(place, 0)]), place, -1)


def _merged(names: list[str], ns: NDArray[np.float64], calls: NDArray[np.float64]) -> Parts:
    merged = Parts({}, {})
    for name, time, count in zip(names, ns, calls):
        merged.ns[name] = merged.ns[name] + time if name in merged.ns else time
        merged.calls[name] = merged.calls[name] + count if name in merged.calls else count
    return merged

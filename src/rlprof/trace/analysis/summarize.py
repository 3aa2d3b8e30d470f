"""Runs every analysis on a trace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from rlprof.trace.analysis.advice import advise
from rlprof.trace.analysis.calls import Calls
from rlprof.trace.analysis.copies import copies_of
from rlprof.trace.analysis.devices import Device, devices_of
from rlprof.trace.analysis.host import Host
from rlprof.trace.analysis.idle import Idle, idle_of
from rlprof.trace.analysis.intervals import Intervals
from rlprof.trace.analysis.launch_bound import launch_bound
from rlprof.trace.analysis.memory import memory_of
from rlprof.trace.analysis.phases import Segments, phases_of, segments_of
from rlprof.trace.analysis.summary import DeviceTime, IdleParts, StepTime, TraceSummary
from rlprof.trace.analysis.syncs import syncs_of
from rlprof.trace.columns import Trace
from rlprof.trace.kinds import Kind


def summarize(trace: Trace) -> TraceSummary:
    host = Host.of(trace)
    devices = devices_of(trace)
    segments = segments_of(host)
    calls = Calls(trace, devices)
    operators = calls.operators()
    rank, ranks = ranks_of(trace)
    found = TraceSummary(
        path=trace.path,
        rank=rank,
        ranks=ranks,
        events=len(trace.kind),
        bytes=trace.unpacked,
        window=host.window[1] - host.window[0],
        steps=tuple(StepTime(step.name, step.end - step.start) for step in host.steps),
        devices=tuple(_device_time(host, device, segments) for device in devices),
        phases=tuple(phases_of(host, devices, segments)),
        operators=tuple(operators),
        kernels=tuple(calls.kernels()),
        copies=tuple(copies_of(trace, devices)),
        launch_bound=launch_bound(trace, devices),
        syncs=tuple(syncs_of(trace)),
        memory=tuple(memory_of(trace, segments)),
        profiler=_profiler_time(host),
        problems=(*trace.problems, *_oddities(calls)),
    )
    return replace(found, advice=tuple(advise(found)))


def ranks_of(trace: Trace) -> tuple[int | None, int | None]:
    """Rank and number of ranks in a distributed training. None if the trace lacks them."""
    info: Any = trace.header.get("distributedInfo")
    if not isinstance(info, dict):
        return None, None
    rank, ranks = info.get("rank"), info.get("world_size")
    return rank if isinstance(rank, int) else None, ranks if isinstance(ranks, int) else None


def _device_time(host: Host, device: Device, segments: Segments) -> DeviceTime:
    inside = Intervals.one(*host.window)
    why = idle_of(host, device, host.window)
    return DeviceTime(
        number=device.number,
        name=device.name,
        busy=(device.busy & inside).total,
        idle=why.total.total,
        kernels=(device.kernels & inside).total,
        copies=(device.copies & inside).total,
        launches=int(np.count_nonzero(host.trace.kind[device.rows] == Kind.KERNEL)),
        why_idle=IdleParts(why.launching.total, why.data.total, why.sync.total, why.host.total, why.ending.total),
        idle_in=_idle_in(why, segments),
    )


def _idle_in(why: Idle, segments: Segments) -> tuple[tuple[str, int], ...]:
    inside = why.total.within(segments.start, segments.end)
    summed = np.bincount(segments.label, inside, len(segments.names)).astype(np.int64)
    named = [(name, int(total)) for name, total in zip(segments.names, summed) if total]
    return tuple(sorted(named, key=lambda entry: (-entry[1], entry[0])))


def _profiler_time(host: Host) -> int:
    rows = host.trace.rows(Kind.OVERHEAD)
    overhead = Intervals.of(host.trace.start[rows], host.trace.end[rows])
    return (overhead & Intervals.one(*host.window)).total


def _oddities(calls: Calls) -> list[str]:
    overlaps = calls.nesting.overlaps
    if not overlaps:
        return []
    what = "operator or call outlasts its caller" if overlaps == 1 else "operators or calls outlast their callers"
    return [f"{overlaps:,} {what}; the time after the caller's end is counted separately"]

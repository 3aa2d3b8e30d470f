"""Which events of a trace belong to some of its steps and phases."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from rlprof.errors import RlprofError
from rlprof.trace.analysis.host import Host
from rlprof.trace.analysis.intervals import Intervals
from rlprof.trace.analysis.launches import launches_of
from rlprof.trace.columns import ABSENT, Rows, Trace
from rlprof.trace.kinds import DEVICE_WORK, STEP_PREFIX, Kind


def selected(trace: Trace, steps: Sequence[int] = (), phases: Sequence[str] = ()) -> Rows:
    """Events of the host inside the chosen steps and phases, what they launched, and the metadata of processes.

    Rows are in file order. The trace must have been read with places=True. Events that begin before or end after are
    kept whole.
    """
    host = Host.of(trace)
    during = _steps(trace, host, steps) & _phases(trace, host, phases)
    if not during.total:
        raise RlprofError(f"{trace.path}: the chosen steps do not contain the chosen phases.")
    timed = trace.phase == ord("X")
    begin = np.where(trace.start == ABSENT, np.iinfo(np.int64).max, trace.start)
    end = np.where(timed & (trace.duration > 0), begin + np.maximum(trace.duration, 0), begin + 1)
    chosen = (begin != np.iinfo(np.int64).max) & (during.within(begin, end) > 0)
    work = trace.rows(*DEVICE_WORK)
    calls = launches_of(trace, work)
    known = calls >= 0
    chosen[work[known]] = chosen[calls[known]]
    chosen |= trace.phase == ord("M")
    arrows = np.flatnonzero(np.isin(trace.phase, [ord(letter) for letter in "stf"]))
    chosen[arrows] = _touching(trace, arrows, np.flatnonzero(chosen & timed))
    return np.flatnonzero(chosen)


def _steps(trace: Trace, host: Host, wanted: Sequence[int]) -> Intervals:
    if not wanted:
        return Intervals.one(*host.window)
    numbers = {_number(step.name): step for step in host.steps}
    for number in wanted:
        if number not in numbers:
            there = ", ".join(str(known) for known in sorted(numbers)[:20]) or "none"
            raise RlprofError(f"{trace.path} has no step {number}. It has {there}.")
    found = [numbers[number] for number in wanted]
    return Intervals.of(np.array([step.start for step in found]), np.array([step.end for step in found]))


def _number(name: str) -> int:
    digits = re.search(r"\d+", name.removeprefix(STEP_PREFIX))
    return int(digits[0]) if digits else -1


def _phases(trace: Trace, host: Host, wanted: Sequence[str]) -> Intervals:
    rows = host.rows(Kind.ANNOTATION)
    if not wanted:
        return Intervals.one(np.iinfo(np.int64).min, np.iinfo(np.int64).max)
    names = np.array(trace.names(rows), object)
    for phase in wanted:
        if not np.any(names == phase):
            known = sorted({name for name in names if not name.startswith(STEP_PREFIX)})
            there = ", ".join(known[:20]) or "none: it was captured without annotations"
            raise RlprofError(f"{trace.path} has no phase {phase}. It has {there}.")
    mine = rows[np.isin(names.astype(str), list(wanted))]
    return Intervals.of(trace.start[mine], trace.end[mine])


def _touching(trace: Trace, arrows: Rows, chosen: Rows) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """For each arrow, whether it ends where a chosen event begins."""

    def keys(rows: Rows) -> np.ndarray[tuple[int], np.dtype[np.void]]:
        columns = np.stack([trace.process[rows], trace.thread[rows], trace.start[rows]], axis=1).astype(np.int64)
        return np.ascontiguousarray(columns).view([("", np.int64)] * 3).ravel()

    return np.isin(keys(arrows), keys(chosen))

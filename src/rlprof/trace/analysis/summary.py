"""Everything that is said of one trace."""

from __future__ import annotations

from dataclasses import dataclass

from rlprof.analysis.advice.advice import Advice
from rlprof.trace.analysis.calls import Total
from rlprof.trace.analysis.copies import Copies
from rlprof.trace.analysis.launch_bound import LaunchBound
from rlprof.trace.analysis.memory import MemoryPeak
from rlprof.trace.analysis.phases import Phase
from rlprof.trace.analysis.syncs import Sync

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class StepTime:
    name: str
    ns: int


@dataclass(frozen=True, slots=True)
class IdleParts:
    """Why a device was idle; ns. They sum to all of its idle time."""

    launching: int
    data: int
    sync: int
    host: int
    ending: int


@dataclass(frozen=True, slots=True)
class DeviceTime:
    """One device inside the window. `busy` and `idle` are all of it; ns."""

    number: int
    name: str
    busy: int
    idle: int
    kernels: int
    """While a kernel runs."""
    copies: int
    """While something is copied or filled; both may run at once."""
    launches: int
    """Kernels."""
    why_idle: IdleParts
    idle_in: tuple[tuple[str, int], ...]
    """By what the host was in meanwhile, longest first."""


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """Times in ns."""

    path: str
    rank: int | None
    ranks: int | None
    events: int
    bytes: int
    """Of JSON, unpacked."""
    window: int
    """From the first step to the end of the last; without steps, all that was recorded."""
    steps: tuple[StepTime, ...]
    devices: tuple[DeviceTime, ...]
    phases: tuple[Phase, ...]
    operators: tuple[Total, ...]
    kernels: tuple[Total, ...]
    copies: tuple[Copies, ...]
    launch_bound: LaunchBound | None
    syncs: tuple[Sync, ...]
    memory: tuple[MemoryPeak, ...]
    profiler: int
    """What the profiler itself took on the host, inside the window, as far as it says."""
    advice: tuple[Advice, ...] = ()
    problems: tuple[str, ...] = ()
    """What could not be used, counted."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What `rlprof trace summary --format json` writes: one entry a file."""

    schema_version: int
    traces: tuple[TraceSummary, ...]

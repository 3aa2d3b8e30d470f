"""The result of analysing traces."""

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
    """Why a device was idle, in ns. The parts add up to its idle time."""

    launching: int
    data: int
    sync: int
    host: int
    ending: int


@dataclass(frozen=True, slots=True)
class DeviceTime:
    """Time of one device inside the window, in ns. `busy` and `idle` add up to the window."""

    number: int
    name: str
    busy: int
    idle: int
    kernels: int
    """Time while a kernel runs."""
    copies: int
    """Time while something is copied or filled. Kernels and copies may run at once."""
    launches: int
    """Number of kernels."""
    why_idle: IdleParts
    idle_in: tuple[tuple[str, int], ...]
    """Idle time by the innermost annotation on the host, longest first."""


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """Times in ns."""

    path: str
    rank: int | None
    ranks: int | None
    events: int
    bytes: int
    """Bytes of JSON after unpacking."""
    window: int
    """From the first step to the end of the last. Without steps, the whole trace."""
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
    """Time of the profiler itself on the host inside the window, as far as the trace has it."""
    advice: tuple[Advice, ...] = ()
    problems: tuple[str, ...] = ()
    """Problems of the file, as sentences."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The content of `rlprof trace summary --format json`: one entry per file."""

    schema_version: int
    traces: tuple[TraceSummary, ...]

"""The data that a recording writes to a session, and the verdict on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rlprof.ledger.snapshot import SpanCost
from rlprof.session.evidence import Evidence


@dataclass(frozen=True, slots=True)
class Sample:
    """The system during about a second before `time`. None if it cannot be measured. CPU is in percent of one core,
    memory in bytes."""

    time: int
    """Time of the ledger's clock."""
    weight: int
    """Length of the sampled time in ns. 0 for the first sample."""
    cpu: float | None
    """CPU of this process."""
    children_cpu: float | None
    """CPU of all descendants of this process."""
    machine_cpu: float | None
    """CPU of the machine, in percent of all cores."""
    held_up: float | None
    """Percentage of the time in which the main thread was ready to run and had no core."""
    rss: int | None
    allocated: int | None
    """Memory of this process's own, used or not: a buffer that fills up raises `rss`, and not this."""
    children_rss: int | None
    """Sum over the descendants. Shared pages count once per process."""
    children: int
    machine_available: int | None
    device_busy: float | None
    device_memory: int | None
    """Used by this process and its children, on all devices."""
    cost: int
    """CPU time that taking this sample cost, in ns."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file of the run, relative to the session's folder."""

    path: str
    kind: str
    time: int


@dataclass(frozen=True, slots=True)
class Mark:
    """A note about an instant: a summary, a warning, the end."""

    time: int
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Lost:
    """The end of a run that could not be written: the difference between the ledger and the session."""

    wall_ns: int
    iterations: int
    steps: int
    calls: int
    """Spans that ended."""
    because: str


@dataclass(slots=True)
class Flush:
    """One flush: the ledger's state, and the journals since the last one."""

    time: int = 0
    raw: dict[str, Any] = field(default_factory=dict)
    costs: list[SpanCost] = field(default_factory=list)
    resets: int = 0
    """Number of resets of the ledger. What the session holds from before the last reset is dropped."""
    iterations: bytes = b""
    """Packed marks, and `gains`, packed rows: see the core's iteration.c."""
    gains: bytes = b""
    between: dict[int, int] = field(default_factory=dict)
    """For marks merged from several, by their last iteration: ns between the merged iterations."""
    with_workers: bool = False
    """True if the marks and gains already include the worker processes."""
    samples: list[Sample] = field(default_factory=list)
    events: bytes = b""
    events_lost: int = 0
    marks: list[Mark] = field(default_factory=list)
    artifacts: list[Artifact] = field(default_factory=list)
    writer_cpu_ns: int = 0
    """CPU time of all flushes so far, in ns."""
    after_ns: int = 0
    """Time since the last step, update or mark, in ns."""
    wait_cpu_ns: int = 0
    """CPU time of the whole process in the driver's waits that probes saw."""
    torch_threads: int | None = None
    frames: Sequence[tuple[Any, ...]] = ()
    """New rows of lines of code, and `stacks`, the rows that have changed: see `rlprof.session.stacks`."""
    stacks: Sequence[tuple[Any, ...]] = ()
    tick_ns: int = 0
    """Interval between two samples of the driver's stack. 0 if it is not sampled."""
    stacks_lost: int = 0
    """Sampled ns that belong to no stack, because there were too many."""
    evidence: Evidence = field(default_factory=Evidence)
    """What the probes know besides times."""
    idle_ns: int = 0
    """Time in which no span has ended, besides those that only wait. Known to within the time between two flushes."""
    planned: dict[str, int] = field(default_factory=dict)
    """Planned number of events of each kind in this run, as far as it is known."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whole sentences for the end-of-run summary: how fast the training is, what takes most of its time, and what to
    try first."""

    sentences: tuple[str, ...] = ()
    pending: bool = False
    """Another process is still writing the report, so there are no sentences yet."""

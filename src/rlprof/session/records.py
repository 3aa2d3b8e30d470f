"""What goes into a session at one flush."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rlprof.ledger.snapshot import SpanCost


@dataclass(frozen=True, slots=True)
class Sample:
    """How the system was doing in the second or so before `time`. None where it cannot be measured; CPU is in percent
    of one core, memory in bytes."""

    time: int
    """The ledger's clock."""
    weight: int
    """The ns it tells about; the first one, none."""
    cpu: float | None
    """This process's."""
    children_cpu: float | None
    """Of the processes below this one."""
    machine_cpu: float | None
    """Of all cores together, in percent of all cores."""
    held_up: float | None
    """Percent of the time that the main thread was ready to run and had no core."""
    rss: int | None
    children_rss: int | None
    """Added up, so pages that they share count in each."""
    children: int
    machine_available: int | None
    device_busy: float | None
    device_memory: int | None
    """Used by this process and its children, on all devices."""
    cost: int
    """CPU time that taking this sample cost, in ns."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file the run left, relative to the session's folder."""

    path: str
    kind: str
    time: int


@dataclass(frozen=True, slots=True)
class Mark:
    """Something worth remembering about an instant: a summary, a warning, the end."""

    time: int
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Lost:
    """The end of a run that could not be written: what the ledger held, less what the session has of it."""

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
    """How often the ledger was told to forget: what the session has of before is no part of its account."""
    iterations: bytes = b""
    """Packed marks, and `gains`, packed rows: see the core's iteration.c."""
    gains: bytes = b""
    between: dict[int, int] = field(default_factory=dict)
    """By the last iteration of a mark that was merged of several: ns that lay between them."""
    with_workers: bool = False
    """Worker processes' part is in the marks and gains already."""
    samples: list[Sample] = field(default_factory=list)
    events: bytes = b""
    events_lost: int = 0
    marks: list[Mark] = field(default_factory=list)
    artifacts: list[Artifact] = field(default_factory=list)
    writer_cpu_ns: int = 0
    """CPU time that flushing has cost so far."""
    after_ns: int = 0
    """Time since something was last stepped, learned or marked."""
    wait_cpu_ns: int = 0
    """CPU time of the whole process while the driver waited, as far as probes saw it."""
    torch_threads: int | None = None

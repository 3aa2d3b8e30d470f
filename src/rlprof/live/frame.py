"""What a live view shows of a session at one moment. Views render frames, and never read the session themselves.

"Now" is the window of the newest iterations that covers about ten seconds. Where they do not tell all (there are none,
much lies between them, or the newest one ended long ago), shares are those since an earlier reading. `window_ns` says
how long the window really is. What is not known is None.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from rlprof.analysis.advice.finding import Finding
from rlprof.analysis.advice.notes import Note
from rlprof.analysis.changes import Change
from rlprof.analysis.code import Line
from rlprof.analysis.training import Outside
from rlprof.session.records import Mark


@dataclass(frozen=True, slots=True)
class Speed:
    """How fast the training is, in `unit`s per second: `step`, or `iteration` if no steps are counted."""

    unit: str = "step"
    now: float | None = None
    mean: float | None = None
    """Over the whole training, as in the report."""
    history: tuple[float, ...] = ()
    """One value per iteration or group of iterations, oldest first, at most 120."""


@dataclass(frozen=True, slots=True)
class Part:
    """One operation at one place of the call tree, in the order of the tree: see `rlprof.analysis.breakdown.Row`.

    The last two are `unattributed` (the driver's time outside of all operations) and `rlprof`.
    """

    operation: str
    category: str
    depth: int
    is_phase: bool
    """It only contains others, such as `rollout`."""
    share: float
    """Percent of the training time with everything below, as in the report. The parts of depth 0 sum to 100."""
    own_share: float
    """The same without what is below. Over all parts it sums to 100."""
    now: float | None
    """`share` within the window of now."""
    own_now: float | None
    ns: int
    """Training time with everything below."""
    calls: int
    mean_ns: float | None
    """Mean duration of a call."""
    path: tuple[str, ...] = ()
    """The operations from the top of the tree to this one."""


@dataclass(frozen=True, slots=True)
class LaneNow:
    """One lane: the driver, a thread, an asyncio task or a worker process."""

    name: str
    kind: str
    """`thread`, `task` or `process`."""
    on_driver: bool
    alive: bool
    doing: tuple[str, ...] = ()
    """The open operations at the last flush, outermost first. Empty if none is open."""
    since_s: float | None = None
    """Seconds from the start of the innermost one, or from the end of the last one if none is open, to the last
    flush."""
    waits: bool = False
    """The innermost open operation waits for others."""
    waits_for: tuple[str, ...] = ()
    """Names of the lanes that work while this one waits, at most 8."""
    busy: float | None = None
    """Percent of the window of now in which the lane worked inside operations."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The newest sample of the system, and the last few minutes. CPU in percent of one core, sizes in bytes.

    For a run that has ended: the means over its training, and the largest sizes.
    """

    cpu: float | None = None
    """CPU of the training's process."""
    children_cpu: float | None = None
    machine_cpu: float | None = None
    """Percent of all cores."""
    cores: int = 1
    """Cores that the training may use."""
    memory: int | None = None
    """Resident memory of the process and its children."""
    memory_available: int | None = None
    memory_machine: int = 0
    gpu: float | None = None
    """Percent of the time that a GPU was busy."""
    gpu_memory: int | None = None
    cpu_history: tuple[float, ...] = ()
    """Process and children, oldest first, at most 120."""
    memory_history: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Stuck:
    """The training has made no progress for a long time."""

    since: float
    """Unix time in seconds when the last span ended, or when the process was last heard of."""
    seconds: float
    reason: str
    """One sentence: what is known about why."""
    lanes: tuple[LaneNow, ...]
    """Those that are inside an operation, the driver first."""


@dataclass(frozen=True, slots=True)
class Frame:
    folder: Path
    name: str
    state: str
    """`running`, `killed`, `running or killed` (on another machine), `finished`, or what else ended it."""
    started: float
    """Unix time in seconds. So is `written`, the time of the last flush; 0 if nothing was flushed yet."""
    written: float
    age_s: float
    """Seconds since the last flush. 0 for a run that has ended."""
    wall_s: float
    """Run time as of now. For a run that has ended: its length."""
    iterations: int = 0
    planned: int | None = None
    """Planned number of iterations, if known."""
    eta_s: float | None = None
    iteration_ns: float | None = None
    """Median duration of all iterations, as in the report."""
    iteration_now_ns: float | None = None
    """Mean time from one iteration to the next in the window of now."""
    open_s: float | None = None
    """Seconds since the newest iteration ended. None before the first one and after the end of the run."""
    steps: int = 0
    episodes: int = 0
    training_s: float | None = None
    """The training time, as in the report."""
    speed: Speed = field(default_factory=Speed)
    window_iterations: int = 0
    window_ns: int = 0
    parts: tuple[Part, ...] = ()
    """Empty until the session was read as a whole for the first time."""
    outside: tuple[Outside, ...] = ()
    lanes: tuple[LaneNow, ...] = ()
    """The driver first, then living lanes in the order of the session; at most 1,000."""
    hidden_lanes: int = 0
    usage: Usage = field(default_factory=Usage)
    findings: tuple[Finding, ...] = ()
    notes: tuple[Note, ...] = ()
    no_finding: str = ""
    """Without a finding: one sentence that says what is largest."""
    changes: tuple[Change, ...] = ()
    """The largest first."""
    marks: tuple[Mark, ...] = ()
    """The newest alerts and warnings, oldest first, at most 20. `time` is Unix time in ns."""
    stuck: Stuck | None = None
    problem: str = ""
    """One sentence if the figures are old, incomplete or missing."""

    @property
    def is_running(self) -> bool:
        return self.state.startswith("running")


@dataclass(frozen=True, slots=True)
class PastIteration:
    """What one iteration of the past did, or several that the session has merged. Counted from 1."""

    first: int
    last: int
    ended: float
    """Unix time in seconds."""
    wall_ns: int
    steps: int
    steps_per_second: float | None
    operations: tuple[tuple[str, str, int, int], ...]
    """(operation, category, own ledger time in ns, calls), the largest time first; `unattributed` and `rlprof` are
    among them. The times sum to `wall_ns`."""


@dataclass(frozen=True, slots=True)
class OperationDetail:
    """One operation over all its places, as in the report's table of operations."""

    operation: str
    category: str
    calls: int
    share: float
    """Own time in percent of the training time."""
    mean_ns: float | None
    p50_ns: float | None
    p95_ns: float | None
    p99_ns: float | None
    min_ns: float
    max_ns: float
    histogram: dict[int, int]
    """Calls by duration: see `rlprof.ledger.histogram`."""
    lines: tuple[Line, ...]
    """The lines of the user's code that its own time comes from, hottest first."""

"""Everything that was measured in a session. Findings are computed from these facts only."""

from __future__ import annotations

import platform
from dataclasses import dataclass, field

from rlprof.analysis.breakdown import Breakdown, breakdown
from rlprof.analysis.code import Code, code_of
from rlprof.analysis.lane_work import Work, work_of
from rlprof.analysis.lanes import LaneTimeline, lane_timeline
from rlprof.analysis.operations import Operation, operations
from rlprof.analysis.parallelism import Parallelism, parallelism
from rlprof.analysis.progress import Progress, progress
from rlprof.analysis.resources import Resources, resources
from rlprof.analysis.series import Series, in_training, series
from rlprof.analysis.training import training_of
from rlprof.ledger.catalogue import AFTER_TRAINING
from rlprof.session.evidence import Evidence
from rlprof.session.info import Info
from rlprof.session.process import runs
from rlprof.session.reader import Session
from rlprof.session.records import Artifact, Lost

RUNNING, KILLED = "running", "killed"
UNKNOWN = "running or killed"
"""The session is from another machine, whose processes cannot be seen."""
UNENDED = (RUNNING, KILLED, UNKNOWN)
"""The session records no end."""


@dataclass(frozen=True, slots=True)
class Facts:
    session: Info
    ended: str
    """`finished`, what stopped it, or one of UNENDED."""
    breakdown: Breakdown
    operations: tuple[Operation, ...]
    progress: Progress
    series: Series
    resources: Resources
    parallelism: Parallelism
    work: Work
    """What each lane did in the iterations: gains are predicted from it."""
    code: Code
    """The lines of the user's code that the time comes from."""
    artifacts: tuple[Artifact, ...]
    lost: Lost | None = None
    """The end of the run that could not be written. No other figure includes it."""
    evidence: Evidence = field(default_factory=Evidence)
    """What the probes know besides times."""
    lanes: LaneTimeline = field(default_factory=LaneTimeline)
    """What each lane did over the iterations."""

    def operation(self, name: str) -> Operation | None:
        return next((operation for operation in self.operations if operation.operation == name), None)

    def of_category(self, *categories: str) -> tuple[Operation, ...]:
        return tuple(operation for operation in self.operations if operation.category in categories)

    def check(self) -> None:
        """Raise AssertionError if the parts do not add up."""
        self.breakdown.check()
        self.series.check()


def ended(session: Session) -> str:
    """How a session ended, or whether it still runs."""
    if session.end is not None:
        return session.end.how
    info = session.info
    if info.host != platform.node():
        return UNKNOWN
    return RUNNING if runs(info.pid, info.process, info.started) else KILLED


def gather_facts(session: Session) -> Facts:
    whole, iterations = session.snapshot(), session.iterations()
    training = training_of(session)
    used = resources(session, training)
    charted = in_training(session, whole, iterations, training.outside_ns(AFTER_TRAINING))
    return Facts(
        session=session.info,
        ended=ended(session),
        breakdown=breakdown(training),
        operations=operations(training.snapshot),
        progress=progress(training, iterations),
        series=series(session, whole, charted),
        resources=used,
        parallelism=parallelism(training.snapshot, used, session.info.cores),
        work=work_of(session),
        code=code_of(session, training),
        artifacts=tuple(session.artifacts()),
        lost=None if session.end is None else session.end.lost,
        evidence=session.evidence,
        lanes=lane_timeline(session, whole, charted),
    )

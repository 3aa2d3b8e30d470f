"""Everything that was measured in a session. Findings are computed from these facts only."""

from __future__ import annotations

from dataclasses import dataclass

from rlprof.analysis.breakdown import Breakdown, breakdown
from rlprof.analysis.operations import Operation, operations
from rlprof.analysis.parallelism import Parallelism, parallelism
from rlprof.analysis.progress import Progress, progress
from rlprof.analysis.resources import Resources, resources
from rlprof.analysis.series import Series, series
from rlprof.session.info import Info
from rlprof.session.reader import Session
from rlprof.session.records import Artifact, Lost

RUNNING = "running or killed"


@dataclass(frozen=True, slots=True)
class Facts:
    session: Info
    ended: str
    """`finished`, what stopped it, or `running or killed` if the session does not record an end."""
    breakdown: Breakdown
    operations: tuple[Operation, ...]
    progress: Progress
    series: Series
    resources: Resources
    parallelism: Parallelism
    artifacts: tuple[Artifact, ...]
    lost: Lost | None = None
    """The end of the run that could not be written. No other figure includes it."""

    def operation(self, name: str) -> Operation | None:
        return next((operation for operation in self.operations if operation.operation == name), None)

    def of_category(self, *categories: str) -> tuple[Operation, ...]:
        return tuple(operation for operation in self.operations if operation.category in categories)

    def check(self) -> None:
        """Raise AssertionError if the parts do not add up."""
        self.breakdown.check()
        self.series.check()


def gather_facts(session: Session) -> Facts:
    snapshot = session.snapshot()
    iterations = session.iterations()
    used = resources(session, snapshot)
    return Facts(
        session=session.info,
        ended=RUNNING if session.end is None else session.end.how,
        breakdown=breakdown(snapshot),
        operations=operations(snapshot),
        progress=progress(snapshot, iterations, session.state.after_ns if session.state else 0),
        series=series(session, snapshot, iterations),
        resources=used,
        parallelism=parallelism(snapshot, used, session.info.cores),
        artifacts=tuple(session.artifacts()),
        lost=None if session.end is None else session.end.lost,
    )

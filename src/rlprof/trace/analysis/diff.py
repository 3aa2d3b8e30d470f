"""What differs per step between two sets of traces, and whether that is more than runs of one side differ.

Two runs of one program differ by more than the steps of either. Four runs of one ResNet differed by 13 % of a step and
by a third of a phase, while their steps varied by 3 %. So noise is computed from runs, not from steps: a difference is
noise if it is inside the 95 % interval of a t-test with the runs as its units. With one run per side, only a change by
more than a factor of two counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlprof.trace.analysis.per_step import Parts, Steps

SCHEMA_VERSION = 1

ADDED, GONE, SLOWER, FASTER, NOISE, SHIFTED = "added", "gone", "slower", "faster", "noise", "shifted"
NOT_JUDGED = "not judged"
"""One trace per side without steps: the noise is unknown."""

NOTABLE = 0.002
"""Fraction of a step: smaller changes are left out."""

FACTOR = 2.0
"""Factor by which single runs must differ."""

T_95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
)  # fmt: skip
"""Student's t for 95 %, two-sided, for 1, 2, ... degrees of freedom. The last value is used for more."""


@dataclass(frozen=True, slots=True)
class Change:
    """Times per step, in ns."""

    name: str
    before: float
    after: float
    calls_before: float
    calls_after: float
    noise: float | None
    """Differences up to this are noise; None if unknown."""
    verdict: str

    @property
    def difference(self) -> float:
        return self.after - self.before


@dataclass(frozen=True, slots=True)
class TraceDiff:
    schema_version: int
    before: tuple[str, ...]
    after: tuple[str, ...]
    unit: str
    """What the noise was computed from: `runs`, or `steps` if no side has two runs."""
    steps_before: int
    steps_after: int
    marked: bool
    """True if all traces have steps; otherwise whole traces are compared."""
    verdict: str
    """`slower` or `faster` steps; `shifted` if only phases changed beyond noise; `noise`."""
    cause: str | None
    """The phase that explains most of the difference; None if nothing changed."""
    step: Change
    phases: tuple[Change, ...]
    """Phases, the largest change first. They add up to the step."""
    idle: tuple[Change, ...]
    operators: tuple[Change, ...]
    kernels: tuple[Change, ...]


def compare(before: Sequence[Steps], after: Sequence[Steps]) -> TraceDiff:
    runs = len(before) > 1 or len(after) > 1
    judge = _Judge(before, after, runs)
    step = judge.change("step", lambda steps: steps.ns, lambda steps: np.ones(len(steps.ns)))
    least = NOTABLE * max(step.before, step.after)

    def changes(parts_of: Callable[[Steps], Parts]) -> tuple[Change, ...]:
        names = {name: None for steps in (*before, *after) for name in parts_of(steps).ns}
        found = [judge.change(name, _values(parts_of, name, "ns"), _values(parts_of, name, "calls")) for name in names]
        wanted = [change for change in found if abs(change.difference) >= least or change.verdict in (ADDED, GONE)]
        return tuple(sorted(wanted, key=lambda change: (-abs(change.difference), change.name)))

    phases = changes(lambda steps: steps.phases)
    verdict, cause = _explained(step, phases)
    return TraceDiff(
        schema_version=SCHEMA_VERSION,
        before=tuple(steps.path for steps in before),
        after=tuple(steps.path for steps in after),
        unit="runs" if runs else "steps",
        steps_before=sum(len(steps.ns) for steps in before),
        steps_after=sum(len(steps.ns) for steps in after),
        marked=all(steps.marked for steps in (*before, *after)),
        verdict=verdict,
        cause=cause,
        step=step,
        phases=phases,
        idle=changes(lambda steps: steps.idle),
        operators=changes(lambda steps: steps.operators),
        kernels=changes(lambda steps: steps.kernels),
    )


def _explained(step: Change, phases: tuple[Change, ...]) -> tuple[str, str | None]:
    changed = [phase for phase in phases if phase.verdict not in (NOISE, NOT_JUDGED)]
    if step.verdict in (SLOWER, FASTER):
        sign = np.sign(step.difference)
        most = max(phases, key=lambda phase: float(sign * phase.difference), default=None)
        return step.verdict, most.name if most else None
    if step.verdict == NOISE and changed:
        return SHIFTED, changed[0].name
    return step.verdict, None


_Values = Callable[[Steps], NDArray[np.float64]]


def _values(parts_of: Callable[[Steps], Parts], name: str, what: str) -> _Values:
    def values(steps: Steps) -> NDArray[np.float64]:
        found: dict[str, NDArray[np.float64]] = getattr(parts_of(steps), what)
        return found.get(name, np.zeros(len(steps.ns)))

    return values


@dataclass(frozen=True)
class _Judge:
    before: Sequence[Steps]
    after: Sequence[Steps]
    runs: bool

    def change(self, name: str, time: _Values, calls: _Values) -> Change:
        sides = [[time(steps) for steps in side] for side in (self.before, self.after)]
        before, after = (float(np.mean([run.mean() for run in side])) for side in sides)
        called = [float(np.mean([calls(steps).mean() for steps in side])) for side in (self.before, self.after)]
        noise = self._between_runs(sides) if self.runs else self._between_steps(sides, max(before, after))
        return Change(name, before, after, called[0], called[1], noise, _verdict(before, after, called, noise))

    def _between_runs(self, sides: list[list[NDArray[np.float64]]]) -> float:
        """Half of the interval of a t-test with one variance for both sides."""
        means = [np.array([run.mean() for run in side]) for side in sides]
        freedom = sum(len(side) - 1 for side in means)
        variance = sum(float(((side - side.mean()) ** 2).sum()) for side in means) / freedom
        t = T_95[min(freedom, len(T_95)) - 1]
        return float(t * np.sqrt(variance * sum(1 / len(side) for side in means)))

    def _between_steps(self, sides: list[list[NDArray[np.float64]]], larger: float) -> float | None:
        """The noise between runs is unknown, but it is larger than that between steps. So also require a factor."""
        deviations = [run.std(ddof=1) for side in sides for run in side if len(run) > 1]
        return max(2 * float(max(deviations)), larger * (1 - 1 / FACTOR)) if deviations else None


def _verdict(before: float, after: float, calls: list[float], noise: float | None) -> str:
    if not calls[0] or not calls[1]:
        return NOISE if not calls[0] and not calls[1] else ADDED if not calls[0] else GONE
    if noise is None:
        return NOT_JUDGED
    if abs(after - before) <= noise:
        return NOISE
    return SLOWER if after > before else FASTER

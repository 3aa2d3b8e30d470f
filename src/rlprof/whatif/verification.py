"""Does an experiment confirm a prediction?

Usually both tell how much faster a training would be: the experiment extrapolates from what slowdowns cost. Where the
model itself expects a kink, as in a pipeline whose other lane is nearly as slow, slowdowns tell nothing about speedups.
There the experiment is compared with what the model predicts for the slowdowns themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rlprof.analysis.comparison import MARGIN
from rlprof.analysis.inference import Interval
from rlprof.analysis.lane_work import Work
from rlprof.analysis.prediction import Prediction
from rlprof.analysis.slowdown import SLOWDOWN_SIZES, Experiment, extrapolate, floor_of
from rlprof.analysis.topology import Saving, Topology, predict
from rlprof.experiment.slowdowns import SlowdownPlan

TOO_FEW = "Not trusted: there were too few slowdowns for an interval. Raise --max-time."
BEND = 0.05
"""Fraction of an iteration: a larger difference between the effects of speedup and slowdown in the model is a kink."""


@dataclass(frozen=True, slots=True)
class Verified:
    predicted: Interval
    experiment: Interval | None
    """The gain that the experiment leads to expect; None if it gives none."""
    at_floor: bool
    """True if the gain is limited by what the session shows of the other operations."""
    experiments: tuple[Experiment, ...]
    trusted: bool
    verdict: str


def fitted(plan: SlowdownPlan, how: Topology) -> SlowdownPlan:
    """The plan for a training with such lanes: what works beside the driver needs iterations to settle."""
    beside = how.model == "async"
    shares_gil = any(group.kind != "process" for group in how.groups)
    return replace(plan, shares_gil=shares_gil, settle=2 if beside else 0, counted=4 if beside else 1)


def verify(work: Work, how: Topology, asked: Prediction, experiments: Mapping[str, Experiment]) -> Verified:
    tried = {name: experiments[name] for name in asked.saving}
    bent = any(_bends(work, how, name) for name in tried)
    found = None if bent else extrapolate(tried, asked.saving, floor_of(work, asked.saving))
    unbounded = extrapolate(tried, asked.saving, 0.0)
    trusted, verdict = _unusable(tried, bent) or (
        _as_predicted(work, how, tried) if bent else _agree(asked.gain, found)
    )
    return Verified(
        predicted=asked.gain,
        experiment=found,
        at_floor=found is not None and unbounded is not None and unbounded.estimate > found.estimate,
        experiments=tuple(tried.values()),
        trusted=trusted,
        verdict=verdict,
    )


def _time(work: Work, how: Topology, saving: Saving) -> float:
    """Predicted time of an iteration, as a fraction of its recorded time."""
    return predict(work.whole, how, saving).wall_ns / work.whole.wall_ns


def _bends(work: Work, how: Topology, name: str) -> bool:
    least, most = SLOWDOWN_SIZES[0], SLOWDOWN_SIZES[-1]
    slower = (_time(work, how, {name: 1 + most}) - 1) / most
    faster = (1 - _time(work, how, {name: 1 - least})) / least
    return abs(slower - faster) > BEND


def _unusable(experiments: Mapping[str, Experiment], bent: bool) -> tuple[bool, str] | None:
    for one in experiments.values():
        if one.why_not:
            return False, f"Not trusted: {one.why_not}."
        if one.kink and not bent:
            disagree = f"the two slowdowns of {one.operation} disagree about its cost"
            return False, f"Not trusted: {disagree}, so they cannot tell what a speedup would bring."
        if one.half_width is None:
            return False, TOO_FEW
    return None


def _as_predicted(work: Work, how: Topology, experiments: Mapping[str, Experiment]) -> tuple[bool, str]:
    for name, one in experiments.items():
        for size, longer in zip(SLOWDOWN_SIZES, one.longer):
            foreseen = _time(work, how, {name: 1 + size}) - 1
            unsure = size * (one.half_width or 0.0)
            if abs(foreseen - longer) > unsure + MARGIN * (1 + max(foreseen, longer)):
                return False, (
                    f"Not trusted: if {name} were faster, something else would be the limit. A slowdown by"
                    f" {100 * size:.0f}% made an iteration {100 * longer:.0f}% longer, but {100 * foreseen:.0f}% was"
                    " predicted."
                )
    return True, "If it were faster, something else would be the limit. The slowdowns had the predicted effect."


def _agree(predicted: Interval, found: Interval | None) -> tuple[bool, str]:
    if found is None or found.low is None or found.high is None:
        return False, TOO_FEW
    low, high = (end if end is not None else predicted.estimate for end in (predicted.low, predicted.high))
    # A gap below the margin of a comparison makes no practical difference.
    gap = max(found.low - high, low - found.high, 0.0)
    if gap / (1 + max(found.estimate, 0.0)) > MARGIN:
        return False, "Not trusted: prediction and experiment disagree."
    return True, "Prediction and experiment agree."

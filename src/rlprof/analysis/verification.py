"""Does an experiment bear a prediction out? Both say how much faster a training would be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rlprof.analysis.comparison import MARGIN, Interval
from rlprof.analysis.injection import Experiment, extrapolate, floor_of
from rlprof.analysis.whatif import Prediction
from rlprof.analysis.work import Work


@dataclass(frozen=True, slots=True)
class Verified:
    predicted: Interval
    experiment: Interval | None
    """The gain that the experiment leads to expect; None where it cannot say."""
    at_floor: bool
    """More cannot be, by what the session shows of the others."""
    experiments: tuple[Experiment, ...]
    trusted: bool
    verdict: str


def verify(work: Work, asked: Prediction, experiments: Mapping[str, Experiment]) -> Verified:
    """Side by side."""
    floor = floor_of(work, asked.saving)
    found = extrapolate(experiments, asked.saving, floor)
    free = extrapolate(experiments, asked.saving, 0.0)
    trusted, verdict = _judge(asked.gain, found, experiments)
    return Verified(
        predicted=asked.gain,
        experiment=found,
        at_floor=found is not None and free is not None and free.estimate > found.estimate,
        experiments=tuple(experiments[name] for name in asked.saving),
        trusted=trusted,
        verdict=verdict,
    )


def _judge(predicted: Interval, found: Interval | None, experiments: Mapping[str, Experiment]) -> tuple[bool, str]:
    for one in experiments.values():
        if one.why_not:
            return False, f"Not trusted: {one.why_not}."
        if one.kink:
            return False, (
                f"Not trusted: the two doses of {one.operation} disagree about what it costs, so that nothing is said"
                " about making it faster."
            )
    if found is None or found.low is None or found.high is None:
        return False, "Not trusted: too few doses were given for an interval."
    low, high = (end if end is not None else predicted.estimate for end in (predicted.low, predicted.high))
    # Apart by less than the margin of a comparison is the same for all practical purposes.
    apart = max(found.low - high, low - found.high, 0.0)
    if apart / (1 + max(found.estimate, 0.0)) > MARGIN:
        return False, "Not trusted: prediction and experiment disagree."
    return True, "Prediction and experiment agree."

"""Does an experiment bear a prediction out?

Mostly both say how much faster a training would be: the experiment by what its doses cost, on the other side. Where the
model itself expects a kink, as in a pipeline whose other lane is nearly as slow, doses say nothing of that side; but
they can still do what the model predicts of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rlprof.analysis.comparison import MARGIN
from rlprof.analysis.inference import Interval
from rlprof.analysis.lane_work import Work
from rlprof.analysis.slowdown import DOSES, Experiment, extrapolate, floor_of
from rlprof.analysis.topology import Saving, Topology, predict
from rlprof.whatif.prediction import Prediction

BEND = 0.05
"""Of an iteration: a model that says so much less of being faster than of being slower expects a kink."""


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


def verify(work: Work, how: Topology, asked: Prediction, experiments: Mapping[str, Experiment]) -> Verified:
    """Side by side."""
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
    """Of an iteration, as a share of what it is."""
    return predict(work.whole, how, saving).wall_ns / work.whole.wall_ns


def _bends(work: Work, how: Topology, name: str) -> bool:
    least, most = DOSES[0], DOSES[-1]
    slower = (_time(work, how, {name: 1 + most}) - 1) / most
    faster = (1 - _time(work, how, {name: 1 - least})) / least
    return abs(slower - faster) > BEND


def _unusable(experiments: Mapping[str, Experiment], bent: bool) -> tuple[bool, str] | None:
    for one in experiments.values():
        if one.why_not:
            return False, f"Not trusted: {one.why_not}."
        if one.kink and not bent:
            return False, (
                f"Not trusted: the two doses of {one.operation} disagree about what it costs, so that nothing is said"
                " about making it faster."
            )
        if one.half_width is None:
            return False, "Not trusted: too few doses were given for an interval."
    return None


def _as_predicted(work: Work, how: Topology, experiments: Mapping[str, Experiment]) -> tuple[bool, str]:
    for name, one in experiments.items():
        for dose, longer in zip(DOSES, one.longer):
            foreseen = _time(work, how, {name: 1 + dose}) - 1
            unsure = dose * (one.half_width or 0.0)
            if abs(foreseen - longer) > unsure + MARGIN * (1 + max(foreseen, longer)):
                return False, (
                    f"Not trusted: something else is the limit when {name} is faster, and {100 * dose:.0f} % slower it"
                    f" made an iteration longer by {100 * longer:.0f} %, where {100 * foreseen:.0f} % were predicted."
                )
    return True, "Something else is the limit when it is faster; made slower, it did what was predicted of that."


def _agree(predicted: Interval, found: Interval | None) -> tuple[bool, str]:
    if found is None or found.low is None or found.high is None:
        return False, "Not trusted: too few doses were given for an interval."
    low, high = (end if end is not None else predicted.estimate for end in (predicted.low, predicted.high))
    # Apart by less than the margin of a comparison is the same for all practical purposes.
    apart = max(found.low - high, low - found.high, 0.0)
    if apart / (1 + max(found.estimate, 0.0)) > MARGIN:
        return False, "Not trusted: prediction and experiment disagree."
    return True, "Prediction and experiment agree."

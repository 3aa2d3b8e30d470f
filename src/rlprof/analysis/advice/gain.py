"""What would a change bring? The prediction of `whatif` for a finding, with an interval that covers what is not known.

Three things are not known: how fast the parts of this training really are, as they vary from iteration to iteration,
how much of the named time a change saves, and how much faster everything else gets. The interval covers all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rlprof.analysis.advice.finding import Gain
from rlprof.analysis.advice.lookup import HUGE, fraction, number
from rlprof.analysis.facts import Facts
from rlprof.analysis.lane_work import Work
from rlprof.analysis.prediction import prediction
from rlprof.analysis.topology import own, topology

MOST = 1000.0
"""No training gets faster than this: a share of 100 % is a share that was not measured exactly."""


SIDE_EFFECTS = 0.6
"""Most that the rest gets faster per fraction of the time that is saved. Code that touches much memory takes the caches
from all other code, and files are written in the background. In benchmarks/answers.py, fixes made the rest 1.06 times
as fast where 24 % of the time were saved, 1.16 with 42 %, 1.25 with 54 %."""


@dataclass(frozen=True, slots=True)
class Left:
    """The fraction of an operation's time that remains after a change: 0 if all of it is saved."""

    estimate: float
    least: float
    most: float


def gain_if(facts: Facts, left: Mapping[str, Left | float]) -> Gain:
    """The gain if only a part is left of the time of each named operation with what it calls, or of its `own` time."""
    ranges = {name: part if isinstance(part, Left) else Left(part, part, part) for name, part in left.items()}
    if not _is_sound(facts.work) or not facts.work.whole.wall_ns:
        return _by_share(facts, ranges)
    how = topology(facts.work)

    middle, least, most = (
        prediction(facts.work, how, {name: getattr(part, end) for name, part in ranges.items()}).gain
        for end in ("estimate", "most", "least")
    )
    low = least.low if least.low is not None else least.estimate
    high = most.high if most.high is not None else most.estimate
    return _gain(1 + middle.estimate, 1 + low, 1 + high)


def _is_sound(work: Work) -> bool:
    """False if a figure cannot be a measurement: a report may come from a file of unknown origin."""
    times = (
        time
        for batch in work.batches
        for piece in batch.pieces
        for time in (piece.work_ns, piece.cpu_ns, piece.ledger_ns, piece.overlapped_ns)
    )
    sizes = (size for batch in work.batches for size in (batch.wall_ns, batch.steps))
    return (
        0 < work.cores < HUGE
        and all(0 <= size < HUGE for size in sizes)
        and all(-HUGE < time < HUGE for time in times)
        and all(batch.wall_ns > 0 for batch in work.batches)
    )


def _by_share(facts: Facts, ranges: Mapping[str, Left]) -> Gain:
    """Without iterations: the part of the training time that is left. One number per operation has no interval of its
    own, so a tenth of what is saved is added on both sides."""
    saved = {"estimate": 0.0, "least": 0.0, "most": 0.0}
    for name, part in ranges.items():
        share = _share(facts, name)
        saved["estimate"] += share * (1 - part.estimate)
        saved["least"] += 0.9 * share * (1 - part.most)
        saved["most"] += 1.1 * share * (1 - part.least)
    return _gain(*(1 / max(1 / MOST, 1 - saved[name]) for name in ("estimate", "least", "most")))


def _share(facts: Facts, name: str) -> float:
    total, inside = 0.0, None
    for row in facts.breakdown.rows:
        if name == own(row.operation):
            total += number(row.ledger_ns)
            continue
        if inside is not None and row.depth > inside:
            continue
        inside = row.depth if row.operation == name else None
        total += number(row.subtree_ledger_ns) if inside is not None else 0.0
    return fraction(total, facts.breakdown.training_ns)


def _gain(estimate: float, low: float, high: float) -> Gain:
    ends = [min(MOST, max(1.0, value)) for value in (estimate, low, high)]
    return with_side_effects(Gain(ends[0], min(ends), max(ends)))


def with_side_effects(gain: Gain) -> Gain:
    """The gain if what is saved has also slowed down everything else."""
    return replace(gain, high=min(MOST, gain.high * (1 + SIDE_EFFECTS * (1 - 1 / gain.high))))

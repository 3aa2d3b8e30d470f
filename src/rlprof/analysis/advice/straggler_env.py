"""One environment is slower than the others, and at every step all of them wait for it."""

from __future__ import annotations

from statistics import median

from rlprof.analysis.advice.advice import Advice, speedup
from rlprof.analysis.advice.arithmetic import number, ratio
from rlprof.analysis.advice.lookup import AGAIN, CONSIDERABLE, ENOUGH_CALLS
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, count, duration
from rlprof.analysis.operations import OnLane, Operation

FEWEST_LANES = 3
"""For "the others" to be a crowd."""

FAR_ABOVE = 1.5
"""Times the others' median: less may be the machine's doing, and a faster straggler would bring little."""

DEVIATIONS = 5.0
"""Of the others' median absolute deviation, scaled to a standard deviation."""
SCALE = 1.4826
LEAST_DEVIATION = 0.05
"""Of their median: three equal lanes would have none."""

PERSISTENT = 0.5
"""Of its calls have to be slow. A lane with one call of ten seconds has a high mean and is no straggler."""


def straggler_env(facts: Facts) -> Advice | None:
    found = [said for operation in facts.of_category("environment") if (said := _look_at(facts, operation)) is not None]
    return max(found, key=lambda advice: advice.most, default=None)


def _look_at(facts: Facts, operation: Operation) -> Advice | None:
    lanes = sorted((lane for lane in operation.lanes if lane.calls >= ENOUGH_CALLS and not _asks(lane)), key=_mean)
    waits = [other for other in facts.operations if other.waited_ns > 0]
    if len(lanes) < FEWEST_LANES or not waits:
        return None
    *others, slow = lanes
    usual = median(map(_mean, others))
    spread = SCALE * median(abs(_mean(lane) - usual) for lane in others)
    limit = max(FAR_ABOVE * usual, usual + DEVIATIONS * max(spread, LEAST_DEVIATION * usual))
    slow_calls = _calls_above(operation, (usual + _mean(slow)) / 2)
    if not usual or _mean(slow) <= limit or slow_calls < PERSISTENT * number(slow.calls):
        return None
    # What all others together do not need, and never more than what the ledger says the training waited for this lane.
    lost = min((_mean(slow) - _mean(others[-1])) * number(slow.calls), number(slow.ledger_ns))
    share = ratio(lost, facts.breakdown.wall_ns)
    if share < CONSIDERABLE:
        return None
    wait = max(waits, key=lambda other: number(other.waited_ns))
    return Advice(
        rule="straggler_env",
        title=f"{slow.lane} steps its environment {count(round(ratio(_mean(slow), usual), 1))} times slower than the "
        f"others, which costs {duration(lost)}.",
        operations=(operation.operation, wait.operation),
        evidence=(
            f"{operation.operation} takes {duration(_mean(slow))} a call on {slow.lane}, and {duration(usual)} "
            f"(median) on the {len(others)} others.",
            f"{count(min(number(slow_calls), number(slow.calls)))} of its {count(slow.calls)} calls were slow, so it "
            "is not a single hold-up.",
            f"{wait.operation} waits for all of them, and {as_percent(share)} of the wall time ({duration(lost)}) is "
            "waiting for this one alone.",
        ),
        action=f"Find out what is different about the environment on {slow.lane} (its level, its seed, its server), or "
        "go on as soon as most have stepped, as asynchronous collectors do.",
        gain=(1.0, speedup(min(share, 1.0), float("inf"))),
        check=f"{AGAIN}: {operation.operation} should take about as long on {slow.lane} as on the others.",
    )


def _asks(lane: OnLane) -> bool:
    """The driver's own thread: its env_step of a vector is the wait for the slowest worker, and no environment's."""
    return lane.on_driver and lane.kind == "thread"


def _mean(lane: OnLane) -> float:
    return ratio(lane.busy_ns, lane.calls)


def _calls_above(operation: Operation, ns: float) -> float:
    """Over all lanes. Bucket i begins at 2^(i/32) ns; none that a duration can be in is beyond 48 x 32."""
    return sum(number(calls) for i, calls in operation.histogram.items() if 2.0 ** (min(max(i, 0), 48 * 32) / 32) >= ns)

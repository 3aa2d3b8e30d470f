"""One environment is slower than the others, and at every step all of them wait for it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import median

from rlprof.analysis.advice.check import compare_with_change
from rlprof.analysis.advice.finding import Finding, Gain
from rlprof.analysis.advice.lookup import CONSIDERABLE, ENOUGH_CALLS, fraction, number, ratio
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, count, duration
from rlprof.analysis.operations import OnLane, Operation

FEWEST_LANES = 3
"""With fewer lanes there is no reliable median of the others."""

FAR_ABOVE = 1.5
"""Times the others' median. Less may be due to the machine, and fixing it would gain little."""

DEVIATIONS = 5.0
"""In units of the others' median absolute deviation, scaled to a standard deviation."""
SCALE = 1.4826
LEAST_DEVIATION = 0.05
"""Fraction of the others' median. Without it, equal lanes would have a deviation of zero."""

PERSISTENT = 0.5
"""Least fraction of slow calls. A lane with a single call of ten seconds has a high mean but is no straggler."""


def straggler_env(facts: Facts) -> Finding | None:
    found = (_look_at(facts, operation) for operation in facts.of_category("environment"))
    return max(filter(None, found), key=lambda one: one.gain.estimate if one.gain else 0.0, default=None)


def _look_at(facts: Facts, operation: Operation) -> Finding | None:
    # Not the driver's own thread: its env_step of a vector is the wait for the slowest worker.
    workers = (lane for lane in operation.lanes if not (lane.on_driver and lane.kind == "thread"))
    order = sorted((lane for lane in workers if lane.calls >= ENOUGH_CALLS), key=_started)
    lanes = sorted(order, key=_mean)
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
    # Beyond the slowest of the others, and never more than the ledger says the training waited for this lane.
    lost = min((_mean(slow) - _mean(others[-1])) * number(slow.calls), number(slow.ledger_ns))
    share = ratio(lost, facts.breakdown.training_ns)
    if share < CONSIDERABLE:
        return None
    wait = max(waits, key=lambda other: number(other.waited_ns))
    return Finding(
        rule="straggler_env",
        cause=f"Worker {_position(order, slow)} steps environments "
        f"{count(round(ratio(_mean(slow), usual), 1))} times slower than the others, which wait for it: "
        f"{as_percent(share)} of the training time ({duration(lost)}).",
        place=next(iter(facts.code.within(operation.operation, on_driver=False)), None),
        operations=(operation.operation, wait.operation),
        evidence=(
            f"{operation.operation} takes {duration(_mean(slow))} per call on {slow.lane}, and {duration(usual)} "
            f"(median) on the {len(others)} others.",
            f"{count(min(number(slow_calls), number(slow.calls)))} of its {count(slow.calls)} calls were slow.",
            f"{wait.operation} waits for all environments. Waiting for this one alone takes {as_percent(share)} of the "
            f"wall time ({duration(lost)}).",
        ),
        change="Make this environment as fast as the others: find out which code only it runs, or more often. If it "
        "must be slow, continue as soon as most environments have stepped, as asynchronous collectors do.",
        gain=_gain(facts, lost),
        check=compare_with_change(facts),
    )


def _gain(facts: Facts, lost_ns: float) -> Gain:
    """The time lost to one lane is known; the others may then take a little longer, as they get its core."""
    training = number(facts.breakdown.training_ns)
    least, middle, most = (1 / max(1e-3, 1 - fraction(part * lost_ns, training)) for part in (0.7, 1.0, 1.3))
    return Gain(middle, least, most)


def _position(order: Sequence[OnLane], slow: OnLane) -> str:
    """`3 of 4 (env-2)` if the names tell the order, else only the name."""
    told = len({tuple(_started(lane)) for lane in order}) == len(order)
    return f"{order.index(slow) + 1} of {len(order)} ({slow.lane})" if told else slow.lane


def _started(lane: OnLane) -> list[int]:
    """Python numbers processes and threads as it starts them: the environments' order."""
    return [int(digits) for digits in re.findall(r"\d+", lane.lane)]


def _mean(lane: OnLane) -> float:
    return ratio(lane.busy_ns, lane.calls)


def _calls_above(operation: Operation, ns: float) -> float:
    """Over all lanes. Bucket i begins at 2^(i/32) ns; no duration is beyond bucket 48 x 32."""
    return sum(number(calls) for i, calls in operation.histogram.items() if 2.0 ** (min(max(i, 0), 48 * 32) / 32) >= ns)

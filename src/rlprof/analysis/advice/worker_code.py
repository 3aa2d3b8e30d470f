"""The training waits for worker processes whose own code takes long, outside of all operations."""

from __future__ import annotations

import re

from rlprof.analysis.advice.check import compare_with_change
from rlprof.analysis.advice.finding import Finding, Gain
from rlprof.analysis.advice.gain import with_side_effects
from rlprof.analysis.advice.lines import SAMPLE_NS, shortened, shown_function
from rlprof.analysis.advice.lookup import CONSIDERABLE, fraction, number
from rlprof.analysis.advice.slow_lines import PATTERNS
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, duration

LARGE_SHARE = 0.2
"""Least share of the training time in which the driver waits and no lane is inside of an operation."""
LARGE_PART = 0.25
"""Least part of the workers' time in the line."""
ENOUGH_NS = 20 * SAMPLE_NS
"""Least sampled time of the line. Workers are sampled five times per second."""
BLOCKS = re.compile(
    r"\.(?:get|recv|recv_bytes|put|poll|join|wait|acquire|accept|result)\(|\bsleep\(|\bwith\s+\S*lock\b|\bfor\b.*\bin\s+iter\("
)
"""Text of lines in which a worker waits for its driver."""
LEFT = (0.1, 0.6)
"""What is left of the line's time: typical, most."""
LESS_OFTEN = "Do it less often, such as once per episode instead of once per step."
WITH_SPAN = 'To have it in the report, put a span around it: `with rlprof.profile("name"):`.'


def worker_code(facts: Facts) -> Finding | None:
    """Speaks if the driver waits for a fifth of the training while no lane works, and if the workers' samples show a
    line that computes meanwhile."""
    training = number(facts.breakdown.training_ns)
    waits = {item.operation: min(number(item.ledger_ns), number(item.idle_ns)) for item in facts.operations}
    share = fraction(sum(waits.values()), training)
    place = next((line for line in facts.code.in_workers if not BLOCKS.search(line.source)), None)
    if place is None or share < LARGE_SHARE or share * place.share < CONSIDERABLE:
        return None
    if place.share < LARGE_PART or place.ns < ENOUGH_NS:
        return None
    pattern = next((one for one in PATTERNS if one.fits(place)), None)
    does = f", which {pattern.does}," if pattern is not None else ""
    longest = max(waits, key=lambda name: waits[name])
    return Finding(
        rule="worker_code",
        cause=f"{place.where} in {shown_function(place)}{does} takes {as_percent(place.share)} of the worker "
        f"processes' time. The training waits for them for {as_percent(share)} of its time.",
        place=place,
        operations=(longest,),
        evidence=(
            f"{longest} waited for {duration(waits[longest])} while no lane was inside of an operation.",
            f"{place.where} `{shortened(place.source)}` was sampled for {duration(place.ns)} in worker processes, "
            "outside of all operations.",
        ),
        change=pattern.change if pattern is not None else f"{LESS_OFTEN} {WITH_SPAN}",
        gain=_gain(share, place.share),
        check=compare_with_change(facts),
    )


def _gain(waits: float, part: float) -> Gain:
    """If workers and driver take turns, the driver waits less by what the workers save. If they work at the same time,
    it may not wait at all."""
    estimate, low = (1 / (1 - min(0.98, waits * part * (1 - left))) for left in LEFT)
    return with_side_effects(Gain(estimate, low, max(estimate, 1 / (1 - min(0.98, waits)))))

"""torch's anomaly mode, which finds the cause of NaNs, was left on.

Updates of two networks (policy and value, Adam) take longer with it: MLPs of 2 x 64 units 2.8 times as long for 1 row,
2.6 times for 32, 1.9 times for 512; of 3 x 512 units 2.1, 1.9 and 1.3 times; a convolutional network 1.1 to 1.4 times.
"""

from __future__ import annotations

from rlprof.analysis.advice.check import compare_with_change
from rlprof.analysis.advice.finding import Finding
from rlprof.analysis.advice.gain import Left, gain_if
from rlprof.analysis.advice.lines import match
from rlprof.analysis.advice.lookup import CONSIDERABLE, fraction, number
from rlprof.analysis.advice.updates import updates_of
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, count

MOSTLY = 0.5
"""Least part of the backward passes in anomaly mode. Fewer may be a search for a NaN."""

SHORT = 10_000_000
"""ns per update. Below it, the overhead per operation of torch dominates, and so does that of the anomaly mode."""
SHORT_LEFT = Left(0.45, 0.3, 0.7)
LONG_LEFT = Left(0.65, 0.45, 0.95)


def anomaly_mode(facts: Facts) -> Finding | None:
    """Speaks if most backward passes ran in anomaly mode, and updates take a tenth of the training time."""
    torch = facts.evidence.torch
    updates = updates_of(facts)
    if torch is None or not torch.anomalous or updates.share < CONSIDERABLE or not updates.inside:
        return None
    part = fraction(torch.anomalous, torch.backwards)
    if part < MOSTLY:
        return None
    found = match(facts, r"detect_anomaly")
    left = SHORT_LEFT if updates.ns_per_step < SHORT else LONG_LEFT
    return Finding(
        rule="anomaly_mode",
        cause=f"torch's anomaly mode is on. It slows down updates, which take {as_percent(updates.share)} of the "
        "training time.",
        place=found.place if found is not None else None,
        operations=updates.inside[:3],
        evidence=(
            f"{count(torch.anomalous)} of {count(number(torch.backwards))} backward passes ran in anomaly mode.",
            "In this mode, torch records a Python traceback for each operation, and checks every gradient for NaNs.",
        ),
        change="Remove `torch.autograd.set_detect_anomaly(True)` and `torch.autograd.detect_anomaly()`. Use them only "
        "while you search for a NaN.",
        gain=gain_if(facts, dict.fromkeys(updates.found.operations, left)),
        check=compare_with_change(facts),
    )

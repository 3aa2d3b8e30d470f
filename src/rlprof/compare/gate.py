"""A gate for CI: fails a comparison whose whole confidence interval is beyond a limit."""

from __future__ import annotations

from dataclasses import dataclass

from rlprof.analysis.comparison import Comparison
from rlprof.compare.text import remedy
from rlprof.errors import RlprofError


@dataclass(frozen=True, slots=True)
class Gate:
    passed: bool
    note: str = ""
    """Why it failed, or why it could not fail."""


def gate(found: Comparison, limit: float) -> Gate:
    """Fails if the whole interval has B slower than A by more than `limit`: 0.05 for 5 %.

    Raises RlprofError for arms that do different work, unless the unit was chosen: no gate has an answer for them.
    """
    if found.withheld:
        raise RlprofError(
            f"A and B do different work, so --fail-if-slower has no answer: {found.work}. {remedy(found)}"
        )
    if found.speedup.high is not None and found.speedup.high < -limit:
        return Gate(False, f"B is slower than A by more than {100 * limit:g} %.")
    if found.speedup.high is None:
        few, more = "pair", "Raise --max-time, or use --pairs 2 or more."
        if found.sessions:
            few, more = "session per side", "Give two or more sessions per side."
        return Gate(True, f"With a single {few} no error rate can be computed, so the gate cannot fail. {more}")
    return Gate(True)

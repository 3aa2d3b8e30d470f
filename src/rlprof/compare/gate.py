"""A gate for CI: fails a comparison whose whole confidence interval is beyond a limit."""

from __future__ import annotations

from dataclasses import dataclass

from rlprof.analysis.comparison import Comparison
from rlprof.compare.text import caution, no_interval, remedy, what_it_takes
from rlprof.errors import RlprofError


@dataclass(frozen=True, slots=True)
class Gate:
    passed: bool
    note: str = ""
    """Why it failed."""


def gate(found: Comparison, limit: float) -> Gate:
    """Fails if the whole interval has B slower than A by more than `limit`: 0.05 for 5%.

    Raises RlprofError if it has no answer: there is no interval, or the arms do different work and no unit was chosen.
    """
    if found.withheld:
        raise RlprofError(
            f"A and B do different work, so --fail-if-slower has no answer: {found.work}. {remedy(found)}"
        )
    if found.speedup.high is None:
        raise RlprofError(f"--fail-if-slower has no answer: {no_interval(found)}. {what_it_takes(found)}")
    if found.speedup.high < -limit:
        return Gate(False, f"B is slower than A by more than {100 * limit:g}%. {caution(found)}".rstrip())
    return Gate(True)

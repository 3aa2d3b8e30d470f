"""A gate for CI: fails a comparison whose whole confidence interval is beyond a limit."""

from __future__ import annotations

from dataclasses import dataclass

from rlprof.analysis.comparison import Comparison
from rlprof.errors import RlprofError


@dataclass(frozen=True, slots=True)
class Gate:
    passed: bool
    note: str = ""
    """Why it failed, or why it could not fail."""


def is_slower(found: Comparison, limit: float) -> bool:
    """True if the whole interval says that B is slower than A by more than `limit`: 0.05 for 5 %."""
    return found.speedup.high is not None and found.speedup.high < -limit


def gate(found: Comparison, limit: float) -> Gate:
    """Raises RlprofError for arms that do different work: no gate has an answer for them."""
    if found.work is not None:
        raise RlprofError(f"A and B do different work, so --fail-if-slower has no answer: {found.work}")
    if is_slower(found, limit):
        return Gate(False, f"B is slower than A by more than {100 * limit:g} %.")
    if found.speedup.high is None:
        few = (
            ("session per side", "Give two or more sessions per side.")
            if found.sessions
            else ("pair", "Raise --max-time, or use --pairs 2 or more.")
        )
        return Gate(True, f"With a single {few[0]} no error rate can be computed, so the gate cannot fail. {few[1]}")
    return Gate(True)

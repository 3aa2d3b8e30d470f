"""What a rule returns: the cause, its place in the code, the evidence, the change, the gain, and how to check it."""

from __future__ import annotations

from dataclasses import dataclass

from rlprof.analysis.code import Line


@dataclass(frozen=True, slots=True)
class Gain:
    """How many times as fast the training would be, with a 95 % interval: 1.5 for half as fast again."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Finding:
    rule: str
    """Name of the rule and of its file."""
    cause: str
    """One sentence with the most important figure."""
    place: Line | None
    """The line of the user's code to change; None if there is no such line, or the stacks were not sampled."""
    operations: tuple[str, ...]
    """The operations concerned, the most important first. Never a phase."""
    evidence: tuple[str, ...]
    """What was measured, with figures."""
    change: str
    """What to change, with code or a command to copy where possible."""
    gain: Gain | None
    """None if the finding is not about speed, as for memory."""
    check: str
    """The command that shows whether the change helped."""
    urgent: bool = False
    """True if the run will not survive without the change."""

"""What a rule returns: the evidence, what to change, the expected gain, and how to check it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Advice:
    rule: str
    """Name of the rule and of its file."""
    title: str
    operations: tuple[str, ...]
    """The operations concerned, the most important first."""
    evidence: tuple[str, ...]
    """What was measured, with figures."""
    action: str
    gain: tuple[float, float] | None
    """How many times as fast the training would be, at least and at most. None if the advice is not about speed."""
    check: str
    """How to find out whether the change helped."""

    @property
    def most(self) -> float:
        return self.gain[1] if self.gain else 1.0


def speedup(share: float, factor: float) -> float:
    """How many times faster the whole gets when a share of the training time (0 to 1) gets `factor` times faster."""
    left = 1 - share + (share / factor if factor != float("inf") else 0.0)
    return 1 / max(left, 1e-3)

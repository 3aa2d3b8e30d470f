"""What a rule says: what it saw, what to do, what that would bring, and how to see whether it did."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Advice:
    rule: str
    """The rule's name, which is its file's."""
    title: str
    """One sentence for who reads nothing else."""
    operations: tuple[str, ...]
    """Those it is about, the most important first."""
    evidence: tuple[str, ...]
    """What was measured, with figures."""
    action: str
    """What to change."""
    gain: tuple[float, float] | None
    """How many times faster the training would be, at least and at most: (1.0, 1.8). None where speed is not
    the point."""
    check: str
    """How to see whether it helped."""

    @property
    def most(self) -> float:
        return self.gain[1] if self.gain else 1.0


def speedup(share: float, factor: float) -> float:
    """How many times faster it all gets when a share of the wall time (0 to 1) gets `factor` times faster."""
    left = 1 - share + (share / factor if factor != float("inf") else 0.0)
    return 1 / max(left, 1e-3)

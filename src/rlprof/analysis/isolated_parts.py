"""How fast should a training be? Its parts were measured alone; one after the other, they are the training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

from rlprof.analysis.expectation import POOR


@dataclass(frozen=True, slots=True)
class PartAlone:
    name: str
    steps_per_second: float
    """Median of the rounds."""
    slowest: float
    fastest: float
    """The quartiles of the rounds."""
    share: float
    """Of the time of all parts, 0 to 1."""


@dataclass(frozen=True, slots=True)
class Alone:
    parts: tuple[PartAlone, ...]
    """The slowest first."""
    expected: float
    """Steps per second of all parts, one after the other."""
    reached: float

    @property
    def ratio(self) -> float:
        return self.reached / self.expected

    @property
    def poor(self) -> bool:
        """Below half of it, something is set up wrongly."""
        return self.ratio < POOR


def alone(measured: Mapping[str, Sequence[float]], reached: float) -> Alone:
    """From seconds a step of each part, several times each, and the steps per second of the training."""
    typical = {name: median(seconds) for name, seconds in measured.items()}
    whole = sum(typical.values())
    parts = []
    for name, seconds in sorted(typical.items(), key=lambda item: -item[1]):
        low, _, high = quantiles(measured[name], n=4, method="inclusive")
        parts.append(PartAlone(name, 1 / seconds, 1 / high, 1 / low, seconds / whole))
    return Alone(tuple(parts), 1 / whole, reached)

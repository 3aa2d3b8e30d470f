"""What a rule about the set-up says."""

from __future__ import annotations

from dataclasses import dataclass

from rlprof.analysis.figures import duration

BAD = "bad"
HINT = "hint"


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that is set up badly."""

    key: str
    """A name that stays the same, for programs."""
    severity: str
    """"bad": costs time or gives wrong figures here, as measured. "hint": may, or only some trainings."""
    what: str
    why: str
    fix: str


def optional_duration(ns: float | None) -> str:
    return "?" if ns is None else duration(ns)

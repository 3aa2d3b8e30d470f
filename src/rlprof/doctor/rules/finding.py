"""The result of a rule."""

from __future__ import annotations

from dataclasses import dataclass

from rlprof.analysis.figures import duration

BAD = "bad"
HINT = "hint"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that slows trainings down or spoils measurements."""

    key: str
    """A name for programs, which never changes."""
    severity: str
    """"bad" costs time or gives wrong figures here, as measured. "hint" may do so, or for some trainings only."""
    what: str
    why: str
    fix: str


def optional_duration(ns: float | None) -> str:
    return "?" if ns is None else duration(ns)

"""The result of a rule."""

from __future__ import annotations

from dataclasses import dataclass

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

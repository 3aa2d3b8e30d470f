"""A probe: functions that attach to the modules of one library once these are imported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType

from rlprof.probes.patches import Patches

Attach = Callable[[ModuleType, Patches], None]


@dataclass(frozen=True, slots=True)
class Probe:
    library: str
    """Name of the distribution. Empty for Python's own modules."""
    attach: Mapping[str, Attach]
    """By module: the function to call after its import."""
    since: tuple[int, ...] = ()
    before: tuple[int, ...] = ()
    """The tested versions: the first, and the first that is too new."""
    generic: bool = False
    """Attach to untested versions too."""

    def version(self) -> str | None:
        """The installed version."""
        from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - slow; by now in use anyway

        try:
            return version(self.library) if self.library else None
        except PackageNotFoundError:
            return None

    def knows(self, installed: str | None) -> bool:
        """True if the probe was tested with this version, or if the version is unknown."""
        if installed is None:
            return True
        parts = _numbers(installed)
        return (not self.since or parts >= self.since) and (not self.before or parts < self.before)


def _numbers(text: str) -> tuple[int, ...]:
    """Leading numbers of a version: (2, 9) of "2.9.2a1"."""
    found = []
    for part in text.split("."):
        if not part.isdecimal():
            break
        found.append(int(part))
    return tuple(found)

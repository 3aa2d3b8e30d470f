"""The phase rules of each profiler, which all of its probes share."""

from __future__ import annotations

import os

from rlprof.ledger.profiler import Profiler
from rlprof.probes.patches import Patches
from rlprof.probes.phase_rules import PhaseRules
from rlprof.probes.seen import seen_by

_phases: dict[Profiler, PhaseRules] = {}


def phases_of(patches: Patches) -> PhaseRules:
    """The phases of a profiler. Made for its first probe, and kept until that probe is undone."""
    profiler = patches.profiler
    phases = _phases.get(profiler)
    if phases is None:
        phases = _phases[profiler] = PhaseRules(profiler)
        patches.put(profiler, "iteration", phases.iteration)
        patches.put(profiler, "disable", phases.disable)
        seen_by(patches).loop = phases.loop
        patches.at_undo(lambda: _phases.pop(profiler).off())
    return phases


def end() -> None:
    """The recording ends."""
    for phases in _phases.values():
        if phases.loop.on:
            phases.end()


def off() -> None:
    """A framework's probe knows the loop. From here on it finds the phases and iterations, and counts."""
    for phases in _phases.values():
        if phases.loop.on:
            phases.off()


def _after_fork_in_child() -> None:
    for phases in _phases.values():
        phases.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)

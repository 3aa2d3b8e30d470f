"""Finds the installed probes and attaches them. A probe that fails warns once, and the others go on."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from importlib import import_module
from types import ModuleType

from rlprof.ledger.profiler import Profiler, get_profiler
from rlprof.probes.imports import ImportHooks
from rlprof.probes.patches import Patches
from rlprof.probes.probe import Attach, Probe

GROUP = "rlprof.probes"
"""Group of entry points. Another package adds a probe by listing it there."""

FOUND = "RLPROF_PROBES"
"""Passes the found probes to child processes: searching all installed packages takes tens of milliseconds."""


def find_probes() -> list[Probe]:
    """The probes that installed packages list."""
    names = os.environ.get(FOUND)
    if names is None:
        from importlib.metadata import entry_points  # noqa: PLC0415 - slow to import, and a worker need not look

        names = ",".join(sorted({entry.value for entry in entry_points(group=GROUP)}))
        os.environ[FOUND] = names
    probes = []
    for value in filter(None, names.split(",")):
        module, _, name = value.partition(":")
        try:
            probes.append(getattr(import_module(module), name))
        except Exception as error:
            get_profiler().warn(f"the probe {value} cannot be loaded", error)
    return probes


class Attached:
    """The probes of one profiler. Attaching twice attaches once."""

    def __init__(self, profiler: Profiler) -> None:
        self._profiler = profiler
        self._hooks = ImportHooks()
        self._patches: dict[str, Patches] = {}
        self._given_up: set[str] = set()
        self._done: set[tuple[str, str]] = set()

    def attach(self, probes: Iterable[Probe]) -> None:
        for probe in probes:
            for module, function in probe.attach.items():
                if (probe.library, module) not in self._done:
                    self._done.add((probe.library, module))
                    self._hooks.after(module, partial(self._attach, probe, function))

    def undo(self) -> None:
        """Restore every library."""
        self._hooks.remove()
        for patches in reversed(self._patches.values()):
            patches.undo()
        self._patches.clear()
        self._done.clear()
        self._given_up.clear()

    def _attach(self, probe: Probe, function: Attach, module: ModuleType) -> None:
        key = f"{probe.library}:{function.__module__}"
        if key in self._given_up:
            return
        installed = probe.version()
        if not probe.knows(installed):
            self._profiler.warn(
                f"{probe.library} {installed} is none of the versions that rlprof was tested with"
                + ("" if probe.generic else ". Only its calls of gymnasium and torch are timed"),
                None,
            )
            if not probe.generic:
                self._given_up.add(key)
                return
        patches = self._patches.setdefault(key, Patches(self._profiler))
        try:
            function(module, patches)
        except Exception as error:
            self._given_up.add(key)
            patches.undo()
            self._profiler.warn(f"cannot attach to {probe.library or module.__name__}", error)

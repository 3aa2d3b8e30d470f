"""Steps, episodes and iterations of a training that runs in worker processes.

The driver's own counts are the session's wherever the driver steps environments: its workers' steps are the ones it has
counted. A driver that only starts the training, and waits, counts nothing; then what the workers counted is the
session's. A driver that learns from what its workers have stepped takes their steps, and the iterations are its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rlprof.recording.worker_trees import Dump


@dataclass(slots=True)
class Counted:
    """What one process has counted."""

    pid: int
    ancestors: frozenset[int]
    steps: int
    episodes: int
    iterations: int
    iterating: bool
    learned: bool
    trained: int
    grouped: bool
    ended: bool = False

    def all_iterations(self, last: bool) -> int:
        """With the one under way, where nothing more will come of it."""
        return self.iterations + (self.iterating and (last or self.ended))


class Counts:
    """Remembers every process that has counted something, those that have ended included."""

    def __init__(self) -> None:
        self._by_file: dict[str, Counted] = {}

    def put(self, file: str, dump: Dump) -> None:
        if dump.steps or dump.episodes or dump.iterations or dump.iterating:
            self._by_file[file] = Counted(
                dump.pid, frozenset(dump.ancestors), dump.steps, dump.episodes, dump.iterations, dump.iterating,
                dump.learned, dump.trained, dump.grouped,
            )  # fmt: skip

    def end(self, file: str) -> None:
        if file in self._by_file:
            self._by_file[file].ended = True

    def add_to(self, raw: dict[str, Any], last: bool, iterations: bool) -> None:
        """Replace what the driver's ledger has counted: its iterations only where it does not learn itself."""
        counted = list(self._by_file.values())
        learners = [one for one in counted if one.learned]
        if not counted:
            return
        steps, episodes = (_outermost(counted, what) for what in ("steps", "episodes"))
        # Where workers learn, the driver's own steps are an evaluation's; unless it steps for a learner elsewhere.
        if not raw["steps"] or (learners and steps > raw["steps"]):
            raw["steps"], raw["episodes"] = steps, episodes
            raw["trained"] = max(raw["trained"], *(one.trained for one in counted))
        if not iterations:
            return
        alike = [one.all_iterations(last) for one in counted if one.grouped]
        apart = [one.all_iterations(last) for one in counted if not one.grouped]
        raw["iterations"] = max(alike, default=0) + sum(apart) or raw["iterations"]


def _outermost(counted: list[Counted], what: str) -> int:
    """A process that steps environments in processes of its own has counted their steps itself."""
    counting = {one.pid for one in counted if getattr(one, what)}
    return sum(getattr(one, what) for one in counted if not one.ancestors & counting)

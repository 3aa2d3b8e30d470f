"""Steps, episodes and iterations of a training that runs in worker processes.

If the driver steps environments, the session has the driver's counts: it has counted the steps of its workers. A driver
that only starts the training and waits counts nothing, so the session has the counts of the workers. If the driver
learns from steps that its workers take, the session has their steps and the driver's iterations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rlprof.recording.worker_trees import Dump


@dataclass(slots=True)
class ProcessCounts:
    """Counts of one process."""

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
        """Includes the iteration under way if it will not be completed."""
        return self.iterations + (self.iterating and (last or self.ended))


class WorkerCounts:
    """Counts of all processes that have counted something, including those that have ended."""

    def __init__(self) -> None:
        self._by_file: dict[str, ProcessCounts] = {}

    def put(self, file: str, dump: Dump) -> None:
        if dump.steps or dump.episodes or dump.iterations or dump.iterating:
            self._by_file[file] = ProcessCounts(
                dump.pid, frozenset(dump.ancestors), dump.steps, dump.episodes, dump.iterations, dump.iterating,
                dump.learned, dump.trained, dump.grouped,
            )  # fmt: skip

    def end(self, file: str) -> None:
        if file in self._by_file:
            self._by_file[file].ended = True

    def add_to(self, raw: dict[str, Any], last: bool, iterations: bool) -> None:
        """Replace the counts of the driver's ledger. `iterations` is False if the driver learns itself."""
        counted = list(self._by_file.values())
        learners = [one for one in counted if one.learned]
        if not counted:
            return
        steps, episodes = (_outermost(counted, what) for what in ("steps", "episodes"))
        # If workers learn, the driver's own steps are an evaluation, unless it steps for a learner elsewhere.
        if not raw["steps"] or (learners and steps > raw["steps"]):
            raw["steps"], raw["episodes"] = steps, episodes
            raw["trained"] = max(raw["trained"], *(one.trained for one in counted))
        if not iterations:
            return
        shared = [one.all_iterations(last) for one in counted if one.grouped]
        separate = [one.all_iterations(last) for one in counted if not one.grouped]
        raw["iterations"] = max(shared, default=0) + sum(separate) or raw["iterations"]


def _outermost(counted: list[ProcessCounts], what: str) -> int:
    """Sum without processes whose ancestor counts too: a process counts the steps of its own workers itself."""
    counting = {one.pid for one in counted if getattr(one, what)}
    return sum(getattr(one, what) for one in counted if not one.ancestors & counting)

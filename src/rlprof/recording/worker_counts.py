"""Steps, episodes and iterations of a training that runs in worker processes.

If the driver steps environments, the session has the driver's counts: it has counted the steps of its workers. A driver
that only starts the training and waits counts nothing, so the session has the counts of the workers. If the driver
learns from steps that its workers take, the session has their steps and the driver's iterations.
"""

from __future__ import annotations

from typing import Any

from msgspec import structs

from rlprof.recording.worker_trees import Dump


class WorkerCounts:
    """Counts of all processes that have counted something, including those that have ended."""

    def __init__(self) -> None:
        self._by_file: dict[str, Dump] = {}
        self._ended: set[str] = set()

    def put(self, file: str, dump: Dump) -> None:
        if dump.steps or dump.episodes or dump.iterations or dump.iterating:
            self._by_file[file] = structs.replace(dump, operations=[], lanes=[], nodes=[])

    def end(self, file: str) -> None:
        self._ended.add(file)

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
        shared, separate = [0], [0]
        for file, one in self._by_file.items():
            # The iteration under way counts if it will not be completed.
            unfinished = one.iterating and (last or file in self._ended)
            (shared if one.grouped else separate).append(one.iterations + unfinished)
        raw["iterations"] = max(shared) + sum(separate) or raw["iterations"]


def _outermost(counted: list[Dump], what: str) -> int:
    """Sum without processes whose ancestor counts too: a process counts the steps of its own workers itself."""
    counting = {one.pid for one in counted if getattr(one, what)}
    return sum(getattr(one, what) for one in counted if counting.isdisjoint(one.ancestors))

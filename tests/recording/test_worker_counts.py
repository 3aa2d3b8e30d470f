"""Which process's steps and iterations the session has."""

from __future__ import annotations

import pytest

from rlprof.recording.worker_counts import WorkerCounts
from rlprof.recording.worker_trees import Dump


def counts(*found: Dump) -> WorkerCounts:
    gathered = WorkerCounts()
    for one in found:
        gathered.put(str(one.pid), one)
    return gathered


def counted(pid: int, steps: int, iterations: int = 0, learned: bool = False) -> Dump:
    return Dump(
        pid=pid, parent=1, name="worker", epoch=0, driver_iteration=0, begun=0, steps=steps, episodes=0,
        iterations=iterations, iterating=False, learned=learned, trained=100 + pid, ancestors=[1], grouped=False,
        operations=[], lanes=[], nodes=[],
    )  # fmt: skip


def test_a_driver_that_learns_from_its_workers_steps_takes_them_and_keeps_its_iterations():
    raw = {"steps": 0, "episodes": 0, "iterations": 5, "trained": 500}
    counts(counted(2, 30), counted(3, 12)).add_to(raw, last=True, iterations=False)
    assert raw == {"steps": 42, "episodes": 0, "iterations": 5, "trained": 500}


@pytest.mark.parametrize("steps", [0, 7])
def test_a_driver_that_waits_for_a_learner_takes_its_steps_and_iterations(steps):
    raw = {"steps": steps, "episodes": 0, "iterations": 0, "trained": 1}
    counts(counted(2, 30, iterations=3, learned=True)).add_to(raw, last=True, iterations=True)
    assert raw == {"steps": 30, "episodes": 0, "iterations": 3, "trained": 102}

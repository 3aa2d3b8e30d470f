"""A part of the driver's call tree gets another name, and an iteration that was none is dropped."""

from __future__ import annotations

import pytest

from rlprof import Profiler
from rlprof.ledger.rows import unpack_marks


@pytest.fixture(params=["c", "python"])
def profiler(request):
    profiler = Profiler(request.param, clock="fake")
    profiler.enable()
    yield profiler
    profiler.disable()


def let_pass(profiler, ns):
    profiler.ledger.set_time(profiler.ledger.now() + ns, 0)


def spend(profiler, ns, *names):
    """So long in the innermost of nested spans."""
    if names:
        with profiler.profile(names[0]):
            spend(profiler, ns, *names[1:])
    else:
        let_pass(profiler, ns)


def tree(profiler):
    """By path: calls, busy, self, shortest, longest. Nothing where nothing is left."""
    snapshot = profiler.snapshot()
    snapshot.check()
    by_id = {node.id: node for node in snapshot.nodes}

    def path(node):
        above = by_id[node.parent] if node.parent is not None else None
        return node.operation if above is None or above.operation is None else f"{path(above)}/{node.operation}"

    nodes = [node for node in snapshot.nodes if node.operation is not None and node.calls]
    return {path(node): (node.calls, node.busy_ns, node.self_ns, node.min_ns, node.max_ns) for node in nodes}


def rename(profiler, was, name):
    return profiler.ledger.rename(profiler.profile(was), profiler.profile(name))


def test_everything_inside_moves_and_the_sums_stay(profiler):
    spend(profiler, 100, "rollout", "env_step")
    spend(profiler, 30, "rollout", "env_step", "env_reset")
    spend(profiler, 7, "rollout")
    spend(profiler, 5, "update", "env_step")
    assert rename(profiler, "rollout", "evaluation")
    assert tree(profiler) == {
        "evaluation": (3, 137, 7, 7, 100),
        "evaluation/env_step": (2, 130, 100, 30, 100),
        "evaluation/env_step/env_reset": (1, 30, 30, 30, 30),
        "update": (1, 5, 0, 5, 5),
        "update/env_step": (1, 5, 5, 5, 5),
    }


def test_it_is_added_to_what_has_that_name(profiler):
    spend(profiler, 100, "evaluation", "env_step")
    spend(profiler, 40, "rollout", "env_step")
    assert rename(profiler, "rollout", "evaluation")
    spend(profiler, 3, "rollout", "env_step")
    assert tree(profiler) == {
        "evaluation": (2, 140, 0, 40, 100),
        "evaluation/env_step": (2, 140, 140, 40, 100),
        "rollout": (1, 3, 0, 3, 3),
        "rollout/env_step": (1, 3, 3, 3, 3),
    }


def test_what_is_open_or_absent_is_not_renamed(profiler):
    assert not rename(profiler, "rollout", "evaluation")
    with profiler.profile("rollout"):
        let_pass(profiler, 10)
        assert not rename(profiler, "rollout", "evaluation")
    assert tree(profiler) == {"rollout": (1, 10, 10, 10, 10)}


def iterations(profiler):
    """Start, end and steps of each mark."""
    marks, _ = profiler.ledger.drain_iterations()
    return [(mark.start, mark.end, mark.steps) for mark in unpack_marks(marks)]


def test_an_iteration_that_is_dropped_is_neither_counted_nor_written(profiler):
    for _ in range(2):
        profiler.iteration()
        profiler.add_steps(3)
        let_pass(profiler, 50)
    profiler.ledger.drop_iteration()
    profiler.ledger.drop_iteration()
    let_pass(profiler, 1000)
    profiler.iteration()
    profiler.add_steps(4)
    let_pass(profiler, 60)
    profiler.disable()
    assert profiler.snapshot().iterations == 2
    assert iterations(profiler) == [(0, 50, 3), (1100, 1160, 4)]

"""A part of the driver's call tree gets another name, and an iteration that was none is dropped."""

from __future__ import annotations

from rlprof.ledger.rows import unpack_marks


def spend(fake, ns, *names):
    """Let time pass in the innermost of nested spans."""
    if names:
        with fake.profile(names[0]):
            spend(fake, ns, *names[1:])
    else:
        fake.tick(ns)


def tree(fake):
    """By path: calls, busy, self, shortest, longest. Nothing where nothing is left."""
    snapshot = fake.snapshot()
    by_id = {node.id: node for node in snapshot.nodes}

    def path(node):
        above = by_id[node.parent] if node.parent is not None else None
        return node.operation if above is None or above.operation is None else f"{path(above)}/{node.operation}"

    nodes = [node for node in snapshot.nodes if node.operation is not None and node.calls]
    return {path(node): (node.calls, node.busy_ns, node.self_ns, node.min_ns, node.max_ns) for node in nodes}


def rename(fake, was, name):
    return fake.profiler.ledger.rename(fake.profile(was), fake.profile(name))


def test_everything_inside_moves_and_the_sums_stay(fake):
    spend(fake, 100, "rollout", "env_step")
    spend(fake, 30, "rollout", "env_step", "env_reset")
    spend(fake, 7, "rollout")
    spend(fake, 5, "update", "env_step")
    assert rename(fake, "rollout", "evaluation")
    assert tree(fake) == {
        "evaluation": (3, 137, 7, 7, 100),
        "evaluation/env_step": (2, 130, 100, 30, 100),
        "evaluation/env_step/env_reset": (1, 30, 30, 30, 30),
        "update": (1, 5, 0, 5, 5),
        "update/env_step": (1, 5, 5, 5, 5),
    }


def test_it_is_added_to_what_has_that_name(fake):
    spend(fake, 100, "evaluation", "env_step")
    spend(fake, 40, "rollout", "env_step")
    assert rename(fake, "rollout", "evaluation")
    spend(fake, 3, "rollout", "env_step")
    assert tree(fake) == {
        "evaluation": (2, 140, 0, 40, 100),
        "evaluation/env_step": (2, 140, 140, 40, 100),
        "rollout": (1, 3, 0, 3, 3),
        "rollout/env_step": (1, 3, 3, 3, 3),
    }


def test_what_is_open_or_absent_is_not_renamed(fake):
    assert not rename(fake, "rollout", "evaluation")
    with fake.profile("rollout"):
        fake.tick(10)
        assert not rename(fake, "rollout", "evaluation")
    assert tree(fake) == {"rollout": (1, 10, 10, 10, 10)}


def iterations(fake):
    """Start, end and steps of each mark."""
    marks, _ = fake.profiler.ledger.drain_iterations()
    return [(mark.start, mark.end, mark.steps) for mark in unpack_marks(marks)]


def test_an_iteration_that_is_dropped_is_neither_counted_nor_written(fake):
    for _ in range(2):
        fake.profiler.iteration()
        fake.profiler.add_steps(3)
        fake.tick(50)
    fake.profiler.ledger.drop_iteration()
    fake.profiler.ledger.drop_iteration()
    fake.tick(1000)
    fake.profiler.iteration()
    fake.profiler.add_steps(4)
    fake.tick(60)
    fake.profiler.disable()
    assert fake.profiler.snapshot().iterations == 2
    assert iterations(fake) == [(1_000, 1_050, 3), (2_100, 2_160, 4)]

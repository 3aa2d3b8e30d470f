"""The call trees of several lanes as one, against planted times."""

from __future__ import annotations

import pytest
from fakes import Actor
from planted import Planted

from rlprof.analysis.calltree import Place, cpu_of, merge


def tree(place: Place) -> dict[str, object]:
    """Operation: its own ledger time if nothing is below it, else that and what is below."""
    return {
        child.operation: (child.ledger_ns, tree(child)) if child.children else child.ledger_ns
        for child in place.children
    }


@pytest.fixture
def root(planted: Planted, actor: Actor) -> Place:
    """Both lanes run rollout > env_step. The driver does so for 100 + 300 ns, the worker for 40 + 60 ns beside it."""
    outer, inner = planted.profile("rollout"), planted.profile("env_step")
    with planted.profile("rollout"):
        actor.enter(outer)
        planted.tick(40)
        actor.enter(inner)
        planted.tick(60, cpu=10)
        actor.exit(inner)
        actor.exit(outer)
        planted.work("env_step", 300)
    planted.work("update", 600)
    return merge(planted.snapshot().net_nodes)


def test_one_path_on_two_lanes_is_one_place(root):
    assert tree(root) == {"update": 600, "rollout": (100, {"env_step": 300})}
    rollout = root.children[1]
    (step,) = rollout.children
    assert (len(rollout.nodes), len(step.nodes)) == (2, 2)
    assert (root.depth, rollout.depth, step.depth) == (-1, 0, 1)


def test_sums_over_the_lanes_and_below(root):
    rollout = root.children[1]
    (step,) = rollout.children
    assert (rollout.self_ns, rollout.subtree_wall_ns) == (100 + 40, 140 + 360)
    assert (step.self_ns, step.subtree_wall_ns) == (300 + 60, 360)
    assert (rollout.overlapped_ns, step.overlapped_ns) == (40, 60)
    assert (rollout.ledger_ns, rollout.subtree_ledger_ns) == (100, 400)


def test_durations_of_all_lanes(root):
    durations = root.children[1].children[0].durations()
    assert (durations.calls, durations.busy_ns, durations.min_ns, durations.max_ns) == (2, 360, 60, 300)
    assert sum(durations.histogram.values()) == 2


def test_cpu_time_is_limited_to_the_time_there_was(planted):
    planted.work("env_step", 100, cpu=170)
    planted.work("update", 100, cpu=30)
    nodes = [node for node in planted.snapshot().net_nodes if node.operation is not None]
    assert cpu_of(nodes) == 100 + 30
    assert cpu_of([]) is None

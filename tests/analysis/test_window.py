"""What a training did in some of its iterations, against planted times."""

from __future__ import annotations

from pathlib import Path

import pytest
from sessions import Written

from rlprof import SpanCost
from rlprof.analysis.window import NodeAt, Window, window
from rlprof.session.reader import Session


def window_of(path: Path, first: int, last: int, **options: bool) -> Window:
    with Session(path) as session:
        nodes = {node.id: node for node in session.snapshot().nodes}

        def path_of(id: int | None) -> tuple[str, ...]:
            node = nodes.get(id)  # type: ignore[arg-type]
            return () if node is None or node.operation is None else (*path_of(node.parent), node.operation)

        places = {id: NodeAt(node.parent, node.lane, path_of(id)) for id, node in nodes.items()}
        rows = session.iterations()
        return window(session.gains(rows[first], rows[last]), places, session.cost, **options)


def recorded(folder: Path, cost: SpanCost | None = None) -> Path:
    """Four iterations of 1,000 ns; the env step inside of the rollout takes 100, 200, 300 and 400 ns."""
    written = Written(folder, cost=cost)
    for number in range(1, 5):
        with written.fake.profiler.iteration():
            with written.fake.profile("rollout"):
                written.work("env_step", 100 * number)
                written.fake.tick(500 - 100 * number)
            written.work("update", 450)
            written.fake.tick(50)
    return written.end()


def test_shares_are_those_of_the_chosen_iterations(tmp_path):
    found = window_of(recorded(tmp_path), 2, 3)
    assert found.training_ns == 2_000
    assert found.share(("rollout",)) == 50
    assert found.share(("rollout",), with_below=False) == 15
    assert found.share(("rollout", "env_step")) == 35
    assert found.share(("update",)) == 45
    assert found.share(()) == 5
    assert found.share(("render",)) == 0


def test_own_times_sum_to_the_window_and_a_lane_is_busy_inside_of_operations(tmp_path):
    found = window_of(recorded(tmp_path), 0, 3)
    assert sum(found.own.values()) == found.training_ns == 4_000
    assert found.busy_ns == {0: 3_800}
    assert found.calls["rollout", "env_step"] == 4


def test_the_cost_of_rlprof_is_a_path_of_its_own(tmp_path):
    found = window_of(recorded(tmp_path, SpanCost(inside_ns=10, outside_ns=0)), 0, 3)
    assert found.own["rlprof",] == 12 * 10
    assert found.own["update",] == 4 * 440
    assert sum(found.own.values()) == 4_000


def test_what_lies_beside_the_training_counts_only_on_request(tmp_path):
    written = Written(tmp_path)
    for _ in range(2):
        with written.fake.profiler.iteration():
            written.work("env_step", 60)
            with written.fake.profile("evaluation"):
                written.work("env_step", 40)
            written.work("trace_export", 900)
    path = written.end()
    found = window_of(path, 0, 1)
    assert (found.training_ns, found.evaluation_ns) == (200, 80)
    assert window_of(path, 0, 1, with_beside=True).training_ns == 2_000


def test_an_empty_window_knows_no_shares():
    found = window([], {}, SpanCost())
    assert found.share(("env_step",)) is None
    assert Window().share(("env_step",)) is None


@pytest.mark.parametrize("last", [1, 3])
def test_gains_of_unknown_nodes_are_left_out(tmp_path, last):
    with Session(recorded(tmp_path)) as session:
        rows = session.iterations()
        assert window(session.gains(rows[0], rows[last]), {}, session.cost).training_ns == 0

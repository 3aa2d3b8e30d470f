"""The accounts over the iterations, against planted times."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from itertools import accumulate
from pathlib import Path

import pytest
from sessions import Written, facts_of

from rlprof import SpanCost
from rlprof.analysis.series import Series, calls_inside, groups_of, own_share, series
from rlprof.session.reader import Gain, IterationRow, Session


def iterations(*sizes: int) -> list[IterationRow]:
    """Stored iterations, each of so many that were merged."""
    ends = list(accumulate(sizes))
    return [IterationRow(end - size, end, end - size, end - 1, 0, 0, wall_ns=size) for size, end in zip(sizes, ends)]


def sizes(groups: list[list[IterationRow]]) -> list[int]:
    return [sum(one.last - one.first + 1 for one in group) for group in groups]


def test_neighbours_are_grouped_by_their_number_of_iterations():
    assert sizes(list(groups_of(iterations(*[1] * 7), 10))) == [1] * 7
    assert sizes(list(groups_of(iterations(*[1] * 7), 3))) == [3, 3, 1]
    assert sizes(list(groups_of(iterations(4, 1, 1, 1, 1), 4))) == [4, 2, 2]
    assert list(groups_of([], 4)) == []


def read(path: Path, points: int = 300) -> Series:
    with Session(path) as session:
        found = series(session, session.snapshot(), session.iterations(), points)
    found.check()
    return found


def recorded(folder: Path, cost: SpanCost | None = None) -> Path:
    """Four iterations: env_step of 100, 200, 300, 400 ns, update of 50 ns in the second and fourth, 10 ns without."""
    written = Written(folder, cost=cost)
    for number in range(1, 5):
        with written.fake.profiler.iteration():
            written.work("env_step", 100 * number)
            if number % 2 == 0:
                written.work("update", 50)
            written.fake.tick(10)
            written.fake.profiler.add_steps(8)
            written.fake.profiler.add_episodes(number == 3)
    return written.end()


def test_a_point_per_iteration(tmp_path):
    found = read(recorded(tmp_path))
    assert (found.first, found.last) == ((1, 2, 3, 4), (1, 2, 3, 4))
    assert found.wall_ns == (110, 260, 310, 460)
    assert found.start_ns == (0, 110, 370, 680)
    assert (found.steps, found.episodes) == ((8, 8, 8, 8), (0, 0, 1, 0))
    assert found.ledger_ns == {
        "env_step": (100, 200, 300, 400), "update": (0, 50, 0, 50), "unattributed": (10,) * 4, "rlprof": (0,) * 4,
    }  # fmt: skip
    assert found.calls == {"env_step": (1, 1, 1, 1), "update": (0, 1, 0, 1)}


def test_merged_points_are_sums(tmp_path):
    found = read(recorded(tmp_path), points=2)
    assert (found.first, found.last) == ((1, 3), (2, 4))
    assert (found.wall_ns, found.steps, found.episodes) == ((370, 770), (16, 16), (0, 1))
    assert found.ledger_ns["env_step"] == (300, 700)
    assert found.calls["update"] == (1, 1)


def test_the_cost_of_rlprof_is_a_part_of_each_point(tmp_path):
    """Each span costs 4 ns inside; the 2 ns outside are in the time without a span."""
    found = read(recorded(tmp_path, SpanCost(inside_ns=4, outside_ns=2)))
    assert found.wall_ns == (110, 260, 310, 460)
    assert found.ledger_ns["env_step"] == (96, 196, 296, 396)
    assert found.ledger_ns["update"] == (0, 46, 0, 46)
    assert found.ledger_ns["unattributed"] == (8, 6, 8, 6)
    assert found.ledger_ns["rlprof"] == (6, 12, 6, 12)


def gain(node: int, calls: int, self_ns: int) -> Gain:
    return Gain(node, calls, self_ns, self_ns, 0, 0, 0)


def test_the_share_of_rlprof_in_a_place():
    """Ten calls of 4 ns inside and five calls below of 2 ns outside are 50 of 200 ns; never more than all of it."""
    cost = SpanCost(inside_ns=4, outside_ns=2)
    assert own_share(gain(1, 10, 200), 5, cost) == pytest.approx(0.25)
    assert own_share(gain(1, 10, 20), 5, cost) == 1.0
    assert own_share(gain(1, 10, 0), 5, cost) == 0.0


def test_calls_are_counted_for_the_place_around_them():
    gains = [gain(1, 3, 0), gain(2, 5, 0), gain(3, 7, 0)]
    assert calls_inside(gains, {1: 0, 2: 1, 3: 1, 0: None}) == Counter({0: 3, 1: 12})


def test_a_point_that_does_not_add_up_is_found():
    wrong = Series((1,), (1,), (0,), (100,), (0,), (0,), {"env_step": (99,)}, {})
    with pytest.raises(AssertionError, match="iterations 1 to 1 sum to 99 ns of 100 ns"):
        wrong.check()


@pytest.mark.parametrize("marked", [False, True])
def test_what_comes_after_the_training_is_in_no_point(tmp_path, marked):
    """Four iterations of 100 ns. The last one goes on for 900 ns after its last update."""
    written = Written(tmp_path)
    for _ in range(4):
        written.fake.profiler.iteration()
        written.work("backward", 100)
        written.fake.profiler.add_steps(1)
    with written.fake.profile("after_training") if marked else nullcontext():
        written.fake.tick(900)
    facts = facts_of(written.end())
    for found in (facts.series, facts.lanes):
        assert set(found.wall_ns) == {100}
        assert found.last[-1] == (4 if marked else 3)
    assert "after_training" not in facts.series.ledger_ns

"""The breakdown of planted trainings: every nanosecond in one row, in the right one."""

from __future__ import annotations

import random
from contextlib import ExitStack
from decimal import Decimal

import pytest
from planted import Planted, Together, in_thread

from rlprof import SpanCost
from rlprof.analysis.breakdown import Breakdown, Row, apportion
from rlprof.ledger.catalogue import CATEGORIES


def tree(breakdown: Breakdown) -> list[str]:
    """Each row with its ledger time, indented by its depth."""
    return [f"{'- ' * row.depth}{row.operation} {row.subtree_ledger_ns}" for row in breakdown.rows]


def row(breakdown: Breakdown, operation: str) -> Row:
    (found,) = [row for row in breakdown.rows if row.operation == operation]
    return found


def percent_sum(parts: tuple[Row, ...]) -> Decimal:
    """Sum of the figures as they are printed."""
    return sum((Decimal(str(part.share)) for part in parts), Decimal())


def random_training(seed: int) -> Planted:
    """Nested spans, waits, worker threads and gaps, on a profiler with a planted cost."""
    rng = random.Random(seed)
    planted = Planted(SpanCost(inside_ns=rng.uniform(0, 40), outside_ns=rng.uniform(0, 40), uncertainty_ns=3))

    def spans(depth: int) -> None:
        for _ in range(rng.randrange(4)):
            with planted.profile(rng.choice(["env_step", "update", "backward", "gae", "odd"]), wait=rng.random() < 0.2):
                planted.tick(rng.randrange(300))
                if depth < 4:
                    spans(depth + 1)
                if rng.random() < 0.2:
                    in_thread(lambda: spans(4))
            planted.tick(rng.randrange(30))

    for _ in range(6):
        spans(0)
    return planted


@pytest.mark.parametrize("seed", range(30))
def test_rows_and_categories_sum_to_the_wall_time_whatever_ran(seed):
    planted = random_training(seed)
    breakdown = planted.breakdown()  # which checks the sums
    assert breakdown.wall_ns == planted.profiler.snapshot().wall_ns > 0
    assert percent_sum(breakdown.top) == 100
    assert percent_sum(breakdown.categories) == 100
    assert all(share.ledger_ns >= 0 for share in breakdown.categories)
    for part in breakdown.top:
        assert abs(part.share - 100 * part.subtree_ledger_ns / breakdown.wall_ns) < 0.1


@pytest.mark.parametrize("seed", range(10))
def test_a_row_is_itself_and_the_rows_below(seed):
    rows = random_training(seed).breakdown().rows
    for i, parent in enumerate(rows):
        below = []
        for other in rows[i + 1 :]:
            if other.depth <= parent.depth:
                break
            if other.depth == parent.depth + 1:
                below.append(other)
        assert parent.subtree_ledger_ns == parent.ledger_ns + sum(child.subtree_ledger_ns for child in below)
        assert parent.wall_ns == parent.self_ns + sum(child.wall_ns for child in below)
        assert parent.subtree_cpu_ns is None or parent.subtree_cpu_ns <= parent.wall_ns
        assert all(child.share <= parent.share for child in below)
        assert below == sorted(below, key=lambda child: -child.subtree_ledger_ns)


def test_one_operation_called_from_two_places_is_two_rows(planted):
    planted.work("policy_forward", 100)
    with planted.profile("evaluation"):
        planted.tick(5)
        planted.work("policy_forward", 30)
        planted.work("policy_forward", 40)
    expected = ["policy_forward 100", "evaluation 75", "- policy_forward 70", "unattributed 0", "rlprof 0"]
    assert tree(planted.breakdown()) == expected


def test_the_same_place_in_several_lanes_is_one_row(planted):
    with planted.profile("env_wait", wait=True), Together(planted, 3, "env_step"):
        planted.tick(900)
    planted.work("update", 100)
    breakdown = planted.breakdown()
    assert tree(breakdown) == ["env_step 900", "update 100", "env_wait 0", "unattributed 0", "rlprof 0"]
    env_step = row(breakdown, "env_step")
    assert (env_step.calls, env_step.wall_ns, env_step.mean_ns, env_step.p95_ns) == (3, 2700, 900, 900)
    assert breakdown.lanes.by_kind == {"thread": 4}
    assert breakdown.lanes.concurrency == pytest.approx(2.8)  # three for 900 of 1000 ns, then one


def test_work_beside_a_busy_driver_is_overlapped_and_not_in_the_sum(planted):
    with planted.profile("update"), Together(planted, 2, "env_step"):
        planted.tick(50)
    breakdown = planted.breakdown()
    assert breakdown.overlapped == {"env_step": 100}
    assert row(breakdown, "env_step").overlapped_ns == 100
    assert row(breakdown, "env_step").share == 0.0
    assert row(breakdown, "update").share == 100.0


def test_time_without_a_span_has_its_own_row_with_its_cpu_time(planted):
    planted.work("env_step", 30)
    planted.tick(70, cpu=20)
    unattributed = row(planted.breakdown(), "unattributed")
    assert (unattributed.ledger_ns, unattributed.share, unattributed.cpu_ns) == (70, 70.0, 20)


def test_the_profilers_cost_has_its_own_row_with_its_uncertainty():
    planted = Planted(SpanCost(inside_ns=10, outside_ns=5, uncertainty_ns=7))
    with planted.profile("update"):
        planted.tick(500)
        planted.work("backward", 485)
    planted.tick(15)
    breakdown = planted.breakdown()
    assert tree(breakdown) == ["update 960", "- backward 475", "unattributed 10", "rlprof 30"]
    assert row(breakdown, "rlprof").uncertainty_ns == 14
    assert row(breakdown, "update").ledger_ns == 485


def test_an_operation_may_be_called_like_one_of_the_extra_rows(planted):
    planted.work("rlprof", 60)
    planted.tick(40)
    breakdown = planted.breakdown()
    assert tree(breakdown) == ["rlprof (a span) 60", "unattributed 40", "rlprof 0"]
    assert [row.category for row in breakdown.rows] == ["other", "unattributed", "rlprof"]
    assert not {"unattributed", "rlprof"} & set(CATEGORIES)


def test_categories_are_of_what_ran_itself_and_not_of_what_called_it(planted):
    with planted.profile("update"):
        planted.tick(1)
        planted.work("buffer_sample", 2)
        planted.work("mystery", 3, category="teacher")
    planted.work("mystery", 4)
    planted.tick(10)
    found = [f"{category.name} {category.ledger_ns}" for category in planted.breakdown().categories]
    assert found == ["teacher 7", "storage 2", "learning 1", "unattributed 10", "rlprof 0"]


def test_the_largest_account_is_one_operation_at_all_its_places(planted):
    with planted.profile("update"):
        planted.work("backward", 40)
        planted.work("policy_forward", 30)
    planted.work("policy_forward", 30)
    largest = planted.breakdown().largest
    assert (largest.name, largest.ledger_ns, largest.share) == ("policy_forward", 60, 60.0)


def test_the_largest_account_may_be_what_no_span_covers(planted):
    planted.work("env_step", 40)
    planted.tick(60)
    assert planted.breakdown().largest.name == "unattributed"


def test_quantiles_are_those_of_all_lanes_together(planted):
    for _ in range(95):
        planted.work("env_step", 1_000)
    for _ in range(5):
        in_thread(lambda: planted.work("env_step", 1_000_000))
    env_step = row(planted.breakdown(), "env_step")
    assert env_step.p50_ns == pytest.approx(1_000, rel=0.011)
    assert env_step.p95_ns == pytest.approx(1_000, rel=0.011)
    assert env_step.p99_ns == pytest.approx(1_000_000, rel=0.011)


def test_cpu_time_is_given_for_a_row_itself_and_including_the_rows_below(planted):
    with planted.profile("update"):
        planted.tick(100, cpu=50)
        planted.work("backward", 300, cpu=290)
    update = row(planted.breakdown(), "update")
    assert (update.cpu_ns, update.subtree_cpu_ns) == (50, 340)


def test_a_row_never_has_a_larger_share_than_the_one_it_is_part_of(planted):
    with planted.profile("update"):
        planted.work("backward", 1_666)
    planted.work("env_step", 4_167)
    planted.work("policy_forward", 4_167)
    breakdown = planted.breakdown()
    assert [row.share for row in breakdown.top] == [41.7, 41.7, 16.6, 0.0, 0.0]
    assert row(breakdown, "backward").share == 16.6


def test_a_span_that_was_opened_this_very_nanosecond_loses_nothing_below_it(planted):
    planted.profile("update").__enter__()
    planted.work("backward", 0)
    assert row(planted.breakdown(), "backward").calls == 1


def test_an_open_span_counts_up_to_now(planted):
    span = planted.profile("update")
    span.__enter__()
    planted.work("backward", 70)
    breakdown = planted.breakdown()
    assert tree(breakdown)[:2] == ["update 70", "- backward 70"]
    assert (row(breakdown, "update").calls, row(breakdown, "update").mean_ns) == (0, None)
    assert breakdown.open_spans == 1


def test_a_call_tree_may_be_deeper_than_pythons_stack(planted):
    with ExitStack() as stack:
        for _ in range(3_000):
            stack.enter_context(planted.profile("search"))
        planted.tick(10)
    rows = planted.breakdown().rows
    assert len(rows) == 3_002
    assert (rows[2_999].depth, rows[2_999].ledger_ns, rows[0].subtree_ledger_ns) == (2_999, 10, 10)


def test_a_profiler_that_recorded_nothing_has_no_shares():
    breakdown = Planted().breakdown()
    assert [(row.operation, row.share) for row in breakdown.rows] == [("unattributed", 0.0), ("rlprof", 0.0)]
    assert breakdown.lanes.concurrency == 0.0


def test_the_largest_remainders_round_up():
    assert apportion(1000, [1, 1, 1]) == [334, 333, 333]
    assert apportion(1000, [6665, 1669, 1666]) == [666, 167, 167]
    assert apportion(10, [0, 0]) == [0, 0]
    assert apportion(7, [0, 3]) == [0, 7]

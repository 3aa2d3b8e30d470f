"""Expected speed, against planted times."""

from __future__ import annotations

from unittest.mock import Mock

import pytest
from planted import Planted

from rlprof.analysis.breakdown import breakdown
from rlprof.analysis.expectation import IDLE, SLOW_CALLS, Expectation, expectation, isolated_expectation
from rlprof.analysis.operations import operations
from rlprof.analysis.progress import progress
from rlprof.analysis.training import training_part
from rlprof.experiment.expectation import measure_isolated
from rlprof.ledger.catalogue import STARTUP
from rlprof.report.expectation import to_text

MS = 1_000_000


def expected(planted: Planted) -> Expectation | None:
    snapshot = planted.snapshot()
    training = training_part(snapshot)
    return expectation(breakdown(training), operations(training.snapshot), progress(training, []))


def losses(found: Expectation) -> dict[str, int]:
    return {loss.what: loss.ns for loss in found.losses}


def test_a_training_that_loses_nothing_reaches_what_its_parts_allow(planted):
    """Twenty steps of 3 ms of environment and 1 ms of policy: 250 steps per second, 333 and 1,000 alone."""
    for _ in range(20):
        planted.work("env_step", 3 * MS)
        planted.work("policy_forward", 1 * MS)
        planted.profiler.add_steps(1)
    found = expected(planted)
    assert found.ratio == pytest.approx(1.0, rel=0.03)
    assert found.steps_per_second == pytest.approx(250, rel=0.03)
    alone = {part.category: part.steps_per_second for part in found.parts}
    assert alone == {"environment": pytest.approx(1000 / 3, rel=0.03), "policy": pytest.approx(1000, rel=0.03)}


def test_parts_and_losses_sum_to_the_time_since_the_training_began(planted):
    planted.work(STARTUP, 500 * MS)
    for number in range(30):
        planted.work("env_step", (1 + number % 3) * MS)
        planted.tick(2 * MS)
    found = expected(planted)
    assert sum(part.typical_ns for part in found.parts) + sum(losses(found).values()) == (60 + 60) * MS
    assert losses(found)["unattributed"] == 60 * MS


def test_calls_slower_than_the_median_are_lost_time(planted):
    """Twenty-four calls of 1 ms and one of 26 ms: 25 of 50 ms are needed."""
    for wall in [1] * 24 + [26]:
        planted.work("env_step", wall * MS)
    found = expected(planted)
    assert losses(found)[SLOW_CALLS] == pytest.approx(25 * MS, rel=0.03)
    assert found.ratio == pytest.approx(0.5, rel=0.03)


def test_a_few_calls_have_no_typical_pace(planted):
    for wall in (1, 1, 28):
        planted.work("env_step", wall * MS)
    found = expected(planted)
    assert (losses(found)[SLOW_CALLS], found.ratio) == (0, 1.0)


def test_waiting_while_a_lane_works_is_not_lost(planted, actor):
    """The driver waits 10 ms: 6 ms for a worker, 4 ms while no lane works. Then it updates for 2 ms."""
    span = planted.profile("env_step")
    with planted.profile("future_wait", wait=True):
        actor.enter(span)
        planted.tick(6 * MS)
        actor.exit(span)
        planted.tick(4 * MS)
    planted.work("update", 2 * MS)
    found = expected(planted)
    assert losses(found)[IDLE] == 4 * MS
    assert found.ratio == pytest.approx(8 / 12)
    assert not found.poor


def test_nothing_recorded_has_no_expectation():
    assert expected(Planted()) is None


def test_isolated_parts_one_after_the_other_are_the_expected_speed():
    found = isolated_expectation({"env": [0.004, 0.002, 0.003], "update": [0.001, 0.001, 0.001]}, reached=100)
    assert [part.name for part in found.parts] == ["env", "update"]
    assert found.expected == pytest.approx(250)
    assert found.parts[0].share == pytest.approx(0.75)
    assert (found.parts[0].slowest, found.parts[0].fastest) == (pytest.approx(1 / 0.0035), pytest.approx(1 / 0.0025))
    assert found.ratio == pytest.approx(0.4)
    assert found.poor
    text = to_text(found, 120)
    assert "could do 250 steps/s. The training did 100, 40.0% of that." in text
    assert "Less than half" in text


def test_isolated_parts_are_measured_by_the_steps_they_return():
    parts = {"a": Mock(return_value=10), "b": Mock(return_value=20)}
    measured = measure_isolated(parts, rounds=3, seconds=0.001)
    assert [len(seconds) for seconds in measured.values()] == [3, 3]
    assert min(part.call_count for part in parts.values()) >= 4

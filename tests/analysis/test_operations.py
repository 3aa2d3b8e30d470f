"""The cost of each operation, against planted times."""

from __future__ import annotations

import pytest
from planted import Planted

from rlprof import SpanCost
from rlprof.analysis.operations import Operation, operations


def found_in(planted: Planted) -> dict[str, Operation]:
    return {operation.operation: operation for operation in operations(planted.snapshot())}


def nested() -> Planted:
    """1,000 ns: three calls of update (100 of their own, 50 in loss each), one env_step of 400, 150 without a span."""
    planted = Planted()
    for _ in range(3):
        with planted.profile("update"):
            planted.tick(100, cpu=40)
            planted.work("loss", 50)
    planted.work("env_step", 400, cpu=100)
    planted.tick(150)
    return planted


def test_own_time_calls_and_share():
    found = found_in(nested())
    update = found["update"]
    assert (update.calls, update.busy_ns, update.self_ns, update.ledger_ns) == (3, 450, 300, 300)
    assert (update.share, update.category) == (30.0, "learning")
    assert (found["loss"].ledger_ns, found["loss"].share) == (150, 15.0)
    assert (found["env_step"].ledger_ns, found["env_step"].share) == (400, 40.0)
    assert sum(operation.ledger_ns for operation in found.values()) == 1_000 - 150


def test_the_largest_ledger_time_comes_first():
    assert list(found_in(nested())) == ["env_step", "update", "loss"]


def test_cpu_time_is_a_part_of_the_own_time():
    found = found_in(nested())
    assert (found["update"].cpu_ns, found["update"].cpu_percent) == (120, 40.0)
    assert (found["env_step"].cpu_ns, found["env_step"].cpu_percent) == (100, 25.0)
    assert found["loss"].cpu_percent == 100.0


def test_durations_of_the_calls(planted):
    for wall in (1_000, 2_000, 3_000, 4_000, 90_000):
        planted.work("env_step", wall)
    step = found_in(planted)["env_step"]
    assert (step.min_ns, step.max_ns, step.mean_ns) == (1_000, 90_000, 20_000)
    assert step.p50_ns == pytest.approx(3_000, rel=0.03)
    assert step.p99_ns == pytest.approx(4_000, rel=0.03)  # rank 0.99 x 4, rounded down
    assert sum(step.histogram.values()) == 5
    for bucket in step.histogram:
        assert any(2 ** (bucket / 32) <= wall < 2 ** ((bucket + 1) / 32) for wall in (1e3, 2e3, 3e3, 4e3, 9e4))


def test_without_an_ended_call_there_are_no_durations(planted):
    planted.profile("update").__enter__()
    planted.tick(70)
    update = found_in(planted)["update"]
    assert (update.calls, update.ledger_ns) == (0, 70)
    assert (update.mean_ns, update.p50_ns, update.min_ns, update.max_ns) == (None, None, None, None)


def test_a_wait_is_idle_only_while_no_lane_works(planted, actor):
    """The driver waits for 700 ns; a worker steps for 600 of them, and for 50 while the driver updates."""
    span = planted.profile("env_step")
    with planted.profile("future_wait", wait=True):
        actor.enter(span)
        planted.tick(600)
        actor.exit(span)
        planted.tick(100)
    with planted.profile("update"):
        actor.enter(span)
        planted.tick(50)
        actor.exit(span)
    found = found_in(planted)
    wait, step = found["future_wait"], found["env_step"]
    assert (wait.self_ns, wait.waited_ns, wait.ledger_ns, wait.idle_ns) == (700, 700, 100, 100)
    assert (step.self_ns, step.waited_ns, step.ledger_ns, step.overlapped_ns, step.idle_ns) == (650, 0, 600, 50, 0)
    assert [(on.lane, on.kind, on.calls, on.on_driver) for on in step.lanes] == [("worker-0", "thread", 2, False)]
    assert [on.on_driver for on in wait.lanes] == [True]


def test_the_cost_of_rlprof_is_taken_out():
    """A span costs 10 ns inside, which is in its duration, and 5 ns outside, which is in its caller's time."""
    planted = Planted(SpanCost(inside_ns=10, outside_ns=5))
    with planted.profile("update"):
        planted.tick(200)
        planted.work("loss", 100)
    found = found_in(planted)
    assert found["loss"].self_ns == 100 - 10
    assert found["update"].self_ns == 200 - 10 - 5

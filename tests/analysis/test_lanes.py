"""What each lane did over the iterations, from sessions with planted times."""

from __future__ import annotations

from sessions import Written, facts_of

from rlprof.analysis.lanes import MOST_OPERATIONS, OTHERS, POINTS


def test_a_lane_is_at_work_when_it_does_not_wait(written: Written, actor) -> None:
    """1,000 ns: 300 update, 600 waiting while a worker steps, 100 in no operation."""
    fake = written.fake
    span = fake.profile("env_step")
    for _ in range(3):
        fake.profiler.iteration()
        written.work("update", 300)
        with fake.profile("future_wait", wait=True):
            actor.enter(span)
            fake.tick(600)
            actor.exit(span)
        fake.tick(100)
    fake.profiler.iteration()
    found = facts_of(written.end()).lanes
    assert (found.first[:3], found.last[:3], found.wall_ns[:3]) == ((1, 2, 3), (1, 2, 3), (1_000,) * 3)
    driver, worker = found.strips
    assert driver.on_driver
    assert driver.name.startswith("driver (")
    assert {name: ns[:3] for name, ns in driver.operations.items()} == {
        "update": (300,) * 3,
        "unattributed": (100,) * 3,
    }
    assert (worker.kind, worker.on_driver) == ("thread", False)
    assert {name: ns[:3] for name, ns in worker.operations.items()} == {"env_step": (600,) * 3}


def test_long_runs_and_many_operations_are_summed(written: Written) -> None:
    for _ in range(3 * POINTS):
        with written.fake.profiler.iteration():
            for number in range(MOST_OPERATIONS + 4):
                written.work(f"operation_{number}", 100 - number)
    found = facts_of(written.end()).lanes
    assert len(found.first) <= POINTS
    assert found.last[-1] == 3 * POINTS
    (strip,) = found.strips
    assert list(strip.operations) == [*(f"operation_{number}" for number in range(MOST_OPERATIONS)), OTHERS]
    for point, wall in enumerate(found.wall_ns):
        assert sum(ns[point] for ns in strip.operations.values()) == wall


def test_a_session_without_iterations_has_no_timeline(written: Written) -> None:
    written.work("env_step", 100)
    found = facts_of(written.end()).lanes
    assert (found.first, found.strips) == ((), ())

"""Start-up with other processes: what they got of it is start-up's, and they may be the first to train."""

from __future__ import annotations

import time
from contextlib import nullcontext

import pytest
from ledger.hands import received
from ledger.helpers import NEEDS_SHARING

pytestmark = NEEDS_SHARING


@pytest.fixture
def worker(driver, begin):
    """A worker of a driver in start-up."""
    driver.ledger.begin_startup(driver.profiler.profile("startup"))
    return begin()


def places(driver) -> dict[tuple[str, ...], int]:
    """Ledger times by the path of operations."""
    raw = driver.ledger.raw()
    names = {row.id: row.name for row in raw["operations"]}
    paths: dict[int, tuple[str, ...]] = {-1: ()}
    for row in raw["nodes"]:
        paths[row.id] = (*paths[row.parent], names[row.operation]) if row.operation >= 0 else ()
    return {paths[row.id]: row.ledger for row in raw["nodes"]}


def test_what_workers_did_before_the_training_is_start_up(driver, worker):
    worker.do("enter", "env_reset")
    driver.wait(0.03)
    assert worker.received() > 0
    driver.ledger.end_startup()
    before = driver.ledger.raw()["wall"]
    assert worker.received() == driver.missing() == 0
    assert 0 < places(driver)["startup",] <= before
    driver.wait(0.03)
    worker.do("exit")
    assert worker.received() == driver.missing() > 25e6


def test_a_worker_that_ends_before_the_training_leaves_nothing_behind(driver, worker):
    worker.do("enter", "env_reset")
    driver.wait(0.02)
    worker.do("exit")
    driver.ledger.end_startup()
    raw = worker.do("call", "raw")
    assert raw["begun"] == driver.ledger.raw()["begun"] > 0
    assert received(raw) == 0


@pytest.mark.parametrize("inside", ["a wait", "nothing"])
def test_a_worker_may_be_the_first_to_train(driver, worker, inside):
    wait = driver.profiler.profile("process_wait", wait=True) if inside == "a wait" else nullcontext()
    with wait:
        worker.do("call", "iteration", False)
        begun = driver.ledger.now()  # the worker began before that
        worker.do("enter", "env_step")
        time.sleep(0.03)
        worker.do("exit")
    raw = driver.ledger.raw()
    found = places(driver)
    got = worker.received()
    assert got > 25e6
    assert driver.missing() == got
    assert found["startup",] <= raw["wall"] - (raw["now"] - begun)
    assert not any(path[:1] == ("startup",) and len(path) > 1 and ns for path, ns in found.items())


def test_while_a_worker_trains_the_driver_without_a_span_waits_for_it(driver, worker):
    worker.do("call", "iteration", False)
    with driver.profiler.profile("evaluation"):
        pass
    worker.do("enter", "env_step")
    time.sleep(0.03)
    worker.do("exit")
    with driver.profiler.profile("evaluation"):
        worker.do("enter", "env_step")
        time.sleep(0.03)
        worker.do("exit")
    assert worker.received() > 25e6
    assert driver.missing() == worker.received()
    assert places(driver)["evaluation",] > 25e6


def test_the_drivers_own_beginning_counts_where_workers_only_step(driver, worker):
    worker.do("call", "iteration", False)
    driver.wait(0.01)
    assert driver.ledger.raw()["begun"] == 1
    driver.ledger.end_startup()
    assert driver.ledger.raw()["begun"] == 2

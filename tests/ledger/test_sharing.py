"""Several processes, one account: the driver's waiting goes to the threads that work, to the nanosecond."""

from __future__ import annotations

import os
import pickle
import random
import threading
import time
from typing import Any

import pytest
from ledger.hands import received
from ledger.helpers import NEEDS_SHARING, in_threads

from rlprof import Profiler

pytestmark = NEEDS_SHARING


def test_what_the_driver_waits_goes_to_a_worker_in_another_process(driver, begin):
    worker = begin()
    worker.do("enter", "env_step")
    driver.wait(0.05)
    worker.do("exit")
    got = worker.received()
    assert got > 45e6
    assert driver.missing() == got
    assert driver.account("env_wait") < 1e6


def test_workers_share_the_wait_equally(driver):
    workers = [driver.fork(), driver.fork(), driver.join()]
    for worker in workers:
        worker.do("enter", "env_step")
    driver.wait(0.05)
    got = [worker.received() for worker in workers]
    assert got[0] == got[1] == got[2] > 14e6
    assert driver.missing() == sum(got)


def test_a_worker_that_ends_first_gets_less(driver, begin):
    quick, slow = begin(), begin()
    quick.do("enter", "env_step")
    slow.do("enter", "env_step")
    driver.wait(0.02)
    quick.do("exit")
    driver.wait(0.05)
    slow.do("exit")
    # Each gets half of the first wait. The slow one gets all of the second. A sleep may be longer than requested.
    got = quick.received(), slow.received()
    assert got[0] >= 0.01e9
    assert got[1] - got[0] >= 0.05e9
    assert driver.missing() == sum(got)


def test_work_beside_a_busy_driver_is_overlapped(driver, begin):
    worker = begin()
    worker.do("enter", "env_step")
    with driver.profiler.profile("update"):
        time.sleep(0.03)
    worker.do("exit")
    raw = worker.do("call", "raw")
    (step,) = (row for row in raw["nodes"] if row.operation >= 0)
    assert received(raw) == driver.missing() == 0
    assert step.overlapped == step.self > 29e6


def test_spans_inside_spans_and_waits_inside_workers(driver, begin):
    worker = begin()
    worker.do("enter", "env_step")
    worker.do("enter", "simulate")
    driver.wait(0.03)
    worker.do("exit")
    worker.do("enter", "read_pipe", wait=True)
    driver.wait(0.03)  # nobody works: it stays here
    worker.do("exit")
    worker.do("exit")
    raw = worker.do("call", "raw")
    names = {row.id: row.name for row in raw["operations"]}
    got = {names[row.operation]: row.ledger for row in raw["nodes"] if row.operation >= 0}
    assert got["simulate"] > 29e6
    assert got["env_step"] < 1e6
    assert got["read_pipe"] == 0
    assert driver.account("env_wait") > 29e6
    assert driver.missing() == received(raw)


def test_threads_inside_workers_are_lanes_that_share(driver, begin):
    one, three = begin(), begin()
    one.do("enter", "env_step")
    three.do("enter_in_threads", "env_step", 3)
    driver.wait(0.04)
    three.do("leave_threads")
    got = one.received(), three.received()
    assert got[1] == 3 * got[0] >= 0.03e9
    assert driver.missing() == sum(got)


def test_the_drivers_own_threads_and_other_processes_share(driver):
    worker = driver.fork()
    worker.do("enter", "env_step")
    inside, over = threading.Event(), threading.Event()

    def work() -> None:
        with driver.profiler.profile("load"):
            inside.set()
            over.wait()

    with in_threads(work):
        inside.wait()
        driver.wait(0.04)
        over.set()
    assert worker.received() == driver.missing() == driver.account("load") > 18e6


def test_a_child_of_a_worker_is_a_worker(driver, begin):
    worker = begin()
    with driver.profiler.profile("env_wait", wait=True):
        got = worker.do("fork")
    assert got > 45e6
    assert driver.missing() == got
    assert len(driver.ledger.members()) == 3


@pytest.mark.long
def test_eight_processes_at_random(driver):
    workers = [driver.fork() if i % 2 else driver.join() for i in range(8)]
    chance = random.Random(4)
    for seed, worker in enumerate(workers):
        worker.send("work_at_random", seed, 1.5)
    until = time.monotonic() + 1.7
    while time.monotonic() < until:
        with driver.profiler.profile("env_wait", wait=True):
            time.sleep(chance.random() * 2e-3)
            if chance.random() < 0.3:
                with driver.profiler.profile("policy_forward"):
                    sum(range(chance.randrange(5_000)))
            if chance.random() < 0.1:
                driver.ledger.raw()
    assert min(worker.answer() for worker in workers) > 0
    raws = [worker.do("call", "raw") for worker in workers]
    assert driver.missing() == sum(map(received, raws)) > 0
    for raw in raws:
        for figure in ("calls", "busy", "self", "ledger", "overlapped", "waited"):
            assert all(getattr(row, figure) >= 0 for row in raw["nodes"])
    assert all(worker.do("snapshot_adds_up") for worker in workers)


def test_a_snapshot_of_the_driver_adds_up_without_the_others(driver, begin):
    worker = begin()
    worker.do("enter", "env_step")
    driver.wait(0.02)
    snapshot = driver.profiler.snapshot()
    snapshot.check()
    assert snapshot.account("env_wait").ledger_ns > 19e6
    assert worker.do("snapshot_adds_up")


def cost_of_spans(profiler: Profiler, spans: int = 20_000) -> float:
    span: Any = profiler.profile("env_step")
    began = time.process_time_ns()
    for _ in range(spans):
        with span:
            pass
    return (time.process_time_ns() - began) / spans


@pytest.mark.figures
def test_a_workers_span_stays_cheap_when_it_shares(driver):
    """Two locked updates of a page in memory: more than a plain span, far less than a system call."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        costs = [cost_of_spans(driver.profiler) for _ in range(5)]
        os.write(write, pickle.dumps(costs))
        os._exit(0)
    os.waitpid(child, 0)
    shared = min(pickle.loads(os.read(read, 4096)))
    unshared = Profiler("c")
    unshared.enable()
    plain = min(cost_of_spans(unshared) for _ in range(5))
    unshared.disable()
    os.close(read)
    os.close(write)
    assert shared < 10 * plain

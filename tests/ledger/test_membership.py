"""Joining, requests, resets and leaving among processes that share the ledger's clocks."""

from __future__ import annotations

import os
import signal
import time

from ledger.hands import Process
from ledger.helpers import NEEDS_SHARING

from rlprof import Profiler

pytestmark = NEEDS_SHARING


def test_sharing_may_begin_while_recording_and_inside_a_wait(tmp_path):
    profiler = Profiler("c")
    profiler.enable()
    with profiler.profile("env_wait", wait=True):
        profiler.ledger.share(tmp_path / "shared", True)
        worker = Process.forked(profiler)
        worker.do("work", "env_step", 0.03)
    got = worker.received()
    raw = profiler.ledger.raw()
    worker.end()
    profiler.disable()
    assert raw["wall"] - sum(row.ledger for row in raw["nodes"]) == got > 29e6


def test_a_worker_does_not_become_the_driver(driver, begin):
    worker = begin()
    worker.do("call", "set_driver")
    worker.do("enter", "env_step")
    driver.wait(0.02)
    assert worker.received() == driver.missing() > 19e6


def test_a_process_that_leaves_is_its_own_driver_again(driver, begin):
    worker, other = begin(), begin()
    worker.do("enter", "env_step")
    driver.wait(0.02)
    got = worker.received()
    worker.do("call", "leave")
    other.do("enter", "env_step")
    driver.wait(0.02)
    assert worker.do("snapshot_adds_up")
    assert driver.missing() == got + other.received() > 39e6
    worker.do("call", "reset")
    worker.do("work", "update", 0.02)
    raw = worker.do("call", "raw")
    assert raw["wall"] == sum(row.ledger for row in raw["nodes"])


def test_when_the_driver_leaves_the_others_notice(driver, begin):
    worker = begin()
    worker.do("answer_requests", 30)
    driver.ledger.leave()
    assert worker.do("call", "listen", 30) == -1
    assert driver.missing() == 0


def test_the_others_answer_requests(driver, begin):
    silent, worker = begin(), begin()
    assert driver.ledger.request(0)  # nobody listens yet
    worker.do("answer_requests", 30)
    while driver.ledger.request(0):  # until it does
        time.sleep(0.001)
    assert driver.ledger.request(20)
    worker.stop()
    assert not driver.ledger.request(0.02)
    worker.kill(signal.SIGCONT)
    assert driver.ledger.request(20)
    assert silent.do("call", "now") > 0


def test_a_reset_of_the_driver_reaches_the_others(driver, begin):
    worker = begin()
    before = worker.do("call", "raw")["epoch"]
    assert worker.do("call", "listen", 0) is None
    driver.profiler.reset()
    driver.ledger.request(0)
    epoch = worker.do("call", "listen", 20)
    assert epoch == driver.ledger.raw()["epoch"] != before
    assert worker.do("call", "raw")["epoch"] == before
    worker.do("call", "reset")
    assert worker.do("call", "raw")["epoch"] == epoch


def test_the_first_span_of_a_process_is_noticed_once(driver):
    seen: list[int] = []
    driver.profiler.at_first_span(lambda: seen.append(os.getpid()))
    read, write = os.pipe()
    with driver.profiler.profile("outer") as outer:
        child = os.fork()
        if child == 0:
            outer.__exit__(None, None, None)
            before = len(seen)
            for _ in range(3):
                with driver.profiler.profile("env_step"):
                    pass
            os.write(write, bytes([before, len(seen)]))
            os._exit(0)
        os.waitpid(child, 0)
    assert os.read(read, 2) == bytes([0, 1])
    assert seen == []  # here it was long ago
    os.close(read)
    os.close(write)

"""Processes that die, stop or hold the lock, and pages that are none: the driver goes on, and the sum stays right."""

from __future__ import annotations

import os
import random
import signal
import struct
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from ledger.helpers import NEEDS_SHARING

from rlprof import Profiler, RlprofWarning

pytestmark = NEEDS_SHARING

LOCK = 8
"""Where on the page the lock is; the slots are at its end."""

SLOTS, SLOT = 1024, "=iiIi"


def test_a_worker_that_is_killed_while_it_works(driver, begin):
    worker = begin()
    worker.do("enter", "env_step")
    worker.kill(signal.SIGKILL)
    driver.processes.remove(worker)
    worker.end()
    driver.wait(0.02)
    lost = driver.missing()
    assert lost > 19e6  # nobody has seen yet that it is gone
    driver.ledger.dismiss(worker.pid)
    assert driver.ledger.members() == [os.getpid()]
    driver.wait(0.02)
    assert driver.missing() < lost + 1e6
    assert driver.account("env_wait") > 19e6


def test_a_worker_that_is_stopped_while_it_works_holds_nobody_up(driver, begin):
    worker, other = begin(), begin()
    worker.do("enter", "env_step")
    worker.stop()
    try:
        other.send("work", "env_step", 0.05)
        with driver.profiler.profile("env_wait", wait=True):
            other.answer()
        assert driver.missing() > 45e6
    finally:
        worker.kill(signal.SIGCONT)
    worker.do("exit")
    assert driver.missing() == worker.received() + other.received()


@pytest.mark.long
def test_stopped_and_killed_at_any_moment(driver):
    """Wherever in its spans and in the lock it is hit: the driver goes on, and never waits longer than its patience."""
    chance = random.Random(7)
    for number in (signal.SIGKILL, signal.SIGSTOP) * 4:
        worker = driver.fork()
        worker.send("work_at_random", 1, 30.0)
        until = time.monotonic() + 0.05 + chance.random() * 0.1
        longest = 0.0
        hit = False
        while time.monotonic() < until or not hit:
            began = time.monotonic()
            driver.wait(1e-4)
            longest = max(longest, time.monotonic() - began)
            if not hit and time.monotonic() > until:
                worker.kill(number)
                until += 0.05
                hit = True
        if number == signal.SIGSTOP:
            worker.kill(signal.SIGKILL)
        driver.processes.remove(worker)
        worker.end()
        driver.ledger.dismiss(worker.pid)
        assert longest < 2
    assert driver.missing() >= 0


def gone() -> int:
    """The number of a process that is no more."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def unreaped() -> Iterator[int]:
    """One that has ended, but nobody has waited for."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    while "State:\tZ" not in Path(f"/proc/{child}/status").read_text():
        time.sleep(0.001)
    yield child
    os.waitpid(child, 0)


@pytest.mark.parametrize("kind", ["gone", "unreaped"])
def test_a_lock_that_a_dead_process_holds_is_taken_over(driver, kind):
    zombie = unreaped() if kind == "unreaped" else iter([gone()])
    held = driver.map()
    struct.pack_into("=i", held, LOCK, next(zombie))
    began = time.monotonic()
    driver.wait(0)
    assert time.monotonic() - began < 5
    assert os.getpid() in driver.ledger.members()
    assert struct.unpack_from("=i", held, LOCK) == (0,)
    next(zombie, None)
    assert driver.missing() == 0


def test_a_lock_that_is_never_given_back_ends_the_sharing(driver):
    worker = driver.fork()
    worker.do("enter", "env_step")
    worker.stop()
    struct.pack_into("=i", driver.map(), LOCK, worker.pid)
    try:
        with pytest.warns(RlprofWarning, match="stopped while it held the lock"):
            driver.wait(0.02)
        assert driver.ledger.members() == []
        missing = driver.missing()
        driver.wait(0.02)
        assert driver.missing() == missing
        assert driver.account("env_wait") > 19e6
    finally:
        worker.kill(signal.SIGCONT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        worker.do("exit")  # it holds the lock, as the test says: for it, it is free


def test_no_room_for_another_process(driver, tmp_path):
    page = driver.map()
    taken = struct.pack(SLOT, os.getpid(), 0, 0, 0) * (SLOTS - 1)
    page[len(page) - len(taken) :] = taken
    joining = f"from rlprof import Profiler; Profiler('c').ledger.share({str(driver.page)!r}, False)"
    done = subprocess.run([sys.executable, "-c", joining], capture_output=True, text=True, check=False)
    assert "OSError: [Errno 28]" in done.stderr
    worker = driver.fork()
    worker.do("enter", "env_step")
    driver.wait(0.02)
    assert driver.missing() == 0  # it is on its own
    assert worker.do("snapshot_adds_up")


@pytest.mark.parametrize("content", [b"", b"rlpage", bytes(100_000), b"x" * 100_000])
def test_what_is_no_page_is_refused(content, tmp_path):
    path = tmp_path / "shared"
    path.write_bytes(content)
    ledger = Profiler("c").ledger
    with pytest.raises(OSError, match="Invalid argument"):
        ledger.share(path, False)
    with pytest.raises(FileExistsError):
        ledger.share(path, True)
    with pytest.raises(FileNotFoundError):
        ledger.share(tmp_path / "nowhere", False)
    assert ledger.members() == []


def test_one_page_at_a_time(driver, tmp_path):
    with pytest.raises(OSError, match="busy"):
        driver.ledger.share(tmp_path / "other", True)
    recording = Profiler("c")
    recording.enable()
    with pytest.raises(OSError, match="busy"):
        recording.ledger.share(driver.page, False)
    recording.disable()


def test_nothing_is_handed_out_while_recording_is_off(driver, begin):
    worker = begin()
    worker.do("enter", "env_step")
    with driver.profiler.profile("env_wait", wait=True):
        driver.profiler.disable()
        time.sleep(0.02)
        assert worker.received() < 19e6
        driver.profiler.enable()
    got = worker.received()
    worker.do("call", "stop")
    driver.wait(0.02)
    assert driver.missing() == got
    worker.do("call", "start")
    driver.wait(0.02)
    assert worker.received() > got + 19e6
    assert driver.missing() == worker.received()

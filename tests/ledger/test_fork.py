"""fork in the middle of open spans: the child records by itself, and the parent's records stay."""

from __future__ import annotations

import os
import sys
import threading
import traceback
import warnings
from collections.abc import Callable

import pytest
from ledger.helpers import in_thread, in_threads

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


def in_child(check: Callable[[], None]) -> None:
    """Fork, run the check in the child, and fail here if it failed there."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # 3.12 warns of forking with threads: that is the test
        child = os.fork()
    if child == 0:
        status = 1
        try:
            check()
            status = 0
        except BaseException:
            os.write(write, traceback.format_exc().encode())
        finally:
            sys.stdout.flush()
            os._exit(status)
    os.close(write)
    _, status = os.waitpid(child, 0)
    with os.fdopen(read) as failure:
        message = failure.read()
    assert status == 0, message or f"the child died of status {status}"


def test_the_child_starts_empty_and_may_leave_the_parents_spans(fake):
    def check() -> None:
        fake.profile("outer").__exit__(None, None, None)
        assert fake.ledger() == {"unattributed": 0}
        fake.tick(4)
        with fake.profile("child"):
            fake.tick(3)
        assert fake.ledger() == {"child": 3, "unattributed": 4}
        assert fake.snapshot().open_spans == 0

    with fake.profile("outer"):
        fake.tick(10)
        in_child(check)
        fake.tick(1)
    assert fake.ledger() == {"outer": 11, "unattributed": 0}


def test_other_threads_spans_stay_in_the_parent(profiler):
    inside, over = threading.Event(), threading.Event()

    def work() -> None:
        with profiler.profile("env_step"):
            inside.set()
            over.wait()

    def check() -> None:
        with profiler.profile("collect", wait=True):
            pass
        snapshot = profiler.snapshot()
        snapshot.check()
        assert [account.operation for account in snapshot.accounts] == ["collect"]
        assert [lane.name for lane in snapshot.lanes] == ["main"]

    with in_threads(work):
        inside.wait()
        in_child(check)
        over.set()
    assert profiler.snapshot().account("env_step").calls == 1


@pytest.mark.long
def test_a_child_does_not_wait_for_threads_that_are_not_there(profiler):
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            with profiler.profile("busy"):
                pass

    with in_threads(work, work, work):
        try:
            for _ in range(10):
                in_child(lambda: profiler.snapshot().check())
        finally:
            over.set()


def test_a_fork_from_another_thread_makes_that_one_the_childs_driver(profiler):
    failures = []

    def check() -> None:
        with profiler.profile("work"):
            for _ in range(1_000):
                pass
        snapshot = profiler.snapshot()
        snapshot.check()
        assert snapshot.account("work").ledger_ns > 0

    def forks() -> None:
        try:
            with profiler.profile("outer"):
                in_child(check)
        except BaseException as error:
            failures.append(error)

    in_thread(forks)
    assert failures == []


@pytest.mark.figures
def test_memory_peaks_of_the_child_do_not_touch_the_parents(profiler):
    def check() -> None:
        with profiler.profile("small", track_memory=True):
            pass
        with profiler.profile("large", track_memory=True):
            block = bytearray(64 << 20)
            del block
        assert profiler.snapshot().account("large").memory_rise > 60 << 20

    with profiler.profile("parent", track_memory=True):
        block = bytearray(32 << 20)
        del block
        in_child(check)
    rise = profiler.snapshot().account("parent").memory_rise
    if rise is not None:
        assert 30 << 20 < rise < 60 << 20


def test_many_generations_of_children_record(fake):
    def check(depth: int = 0) -> None:
        with fake.profile(f"level {depth}"):
            fake.tick(1)
            if depth < 3:
                in_child(lambda: check(depth + 1))
        assert fake.ledger() == {f"level {depth}": 1, "unattributed": 0}

    check()

"""enable, disable and reset, also while spans are open on other threads."""

from __future__ import annotations

import threading

import pytest
from fakes import CORES
from ledger.helpers import in_threads, inside

from rlprof import Profiler


def test_a_pause_is_in_no_account(fake):
    with fake.profile("training"):
        fake.tick(10)
        fake.profiler.disable()
        fake.tick(1_000)
        fake.profiler.enable()
        fake.tick(5)
    account = fake.snapshot().account("training")
    assert (account.ledger_ns, account.busy_ns, account.calls) == (15, 15, 1)
    assert fake.snapshot().wall_ns == 15


def test_a_span_that_ends_in_a_pause_ended_where_the_pause_began(fake):
    with fake.profile("training"):
        fake.tick(10)
        fake.profiler.disable()
        fake.tick(1_000)
    fake.profiler.enable()
    fake.tick(3)
    account = fake.snapshot().account("training")
    assert (account.ledger_ns, account.busy_ns, account.calls) == (10, 10, 1)
    assert fake.snapshot().unattributed_ns == 3


def test_a_span_that_began_in_a_pause_is_not_recorded(fake):
    fake.profiler.disable()
    with fake.profile("unseen"):
        fake.profiler.enable()
        fake.tick(10)
        with fake.profile("seen"):
            fake.tick(1)
    assert fake.ledger() == {"seen": 1, "unattributed": 10}


def test_reset_counts_open_spans_from_there(fake, actors):
    with inside(actors(), fake.profile("env_step")), fake.profile("training"):
        with fake.profile("old"):
            fake.tick(10)
        fake.profiler.iteration()
        fake.profiler.reset()
        fake.tick(5)
    snapshot = fake.snapshot()
    assert fake.ledger() == {"training": 5, "env_step": 0, "unattributed": 0}
    assert snapshot.account("training").busy_ns == 5
    assert snapshot.account("env_step").busy_ns == 5
    assert (snapshot.wall_ns, snapshot.iterations) == (5, 0)


def test_reset_while_off_forgets(fake):
    with fake.profile("a"):
        fake.tick(10)
    fake.profiler.disable()
    fake.profiler.reset()
    assert fake.snapshot().accounts == []
    assert fake.snapshot().wall_ns == 0


def test_a_worker_that_leaves_its_span_in_a_pause_has_no_claim_after_it(fake, actors):
    worker = actors()
    worker.enter(fake.profile("env_step"))
    with fake.profile("collect", wait=True):
        fake.tick(10)
        fake.profiler.disable()
        worker.exit(fake.profile("env_step"))
        fake.profiler.enable()
        fake.tick(7)
    assert fake.ledger() == {"env_step": 10, "collect": 7, "unattributed": 0}


def test_enabling_twice_changes_nothing(fake):
    fake.tick(5)
    fake.profiler.enable()
    fake.tick(5)
    assert fake.snapshot().wall_ns == 10
    fake.profiler.disable()
    fake.profiler.disable()
    assert fake.snapshot().wall_ns == 10


def test_switching_while_threads_race_keeps_the_account(core):
    profiler = Profiler(core)
    over = threading.Event()
    errors = []

    def work() -> None:
        try:
            while not over.is_set():
                with profiler.profile("outer"), profiler.profile("wait", wait=True), profiler.profile("inner"):
                    pass
        except BaseException as error:
            errors.append(error)

    with in_threads(*[work] * 4):
        try:
            for i in range(300 if core == "c" else 60):
                profiler.enable()
                with profiler.profile("main", wait=bool(i % 2)):
                    if i % 3 == 0:
                        profiler.reset()
                    if i % 5 == 0:
                        profiler.snapshot().check()
                profiler.disable()
                profiler.snapshot().check()
        finally:
            over.set()
    assert errors == []
    assert profiler.snapshot().open_spans == 0


def test_unknown_cores_and_clocks_are_refused():
    with pytest.raises(ValueError, match="core is 'auto', 'c' or 'python', not 'rust'"):
        Profiler("rust")
    for core in CORES:
        with pytest.raises(ValueError, match="clock is 'auto', 'monotonic', 'tsc' or 'fake', not 'sundial'"):
            Profiler(core, clock="sundial")
        with pytest.raises(ValueError, match="cpu is 'auto', 'syscall' or 'off', not 'guess'"):
            Profiler(core, cpu="guess")

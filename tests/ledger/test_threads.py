"""Threads: pools, thousands of short lives, and ends in the middle of spans."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor

import pytest
from fakes import Fake
from ledger.helpers import in_thread, inside

from rlprof import Profiler


def test_every_thread_has_a_lane_with_its_name(fake, actors):
    for name in ("env-0", "env-1"):
        actors(name).enter(fake.profile("env_step"))
    lanes = fake.snapshot().lanes
    assert [(lane.kind, lane.name, lane.on_driver) for lane in lanes] == [
        ("thread", "main", True),
        ("thread", "env-0", False),
        ("thread", "env-1", False),
    ]


def test_counts_are_exact_when_threads_race(profiler):
    def work() -> None:
        for _ in range(2_000):
            with profiler.profile("outer"), profiler.profile("inner"):
                pass

    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(work) for _ in range(8)]:
            future.result()
    snapshot = profiler.snapshot()
    snapshot.check()
    assert snapshot.account("outer").calls == snapshot.account("inner").calls == 16_000


@pytest.mark.long
def test_thousands_of_threads_leave_a_bounded_number_of_lanes(profiler):
    def work() -> None:
        with profiler.profile("env_step"):
            pass

    for _ in range(2_000):
        in_thread(work)
    snapshot = profiler.snapshot()
    snapshot.check()
    assert snapshot.account("env_step").calls == 2_000
    assert len(snapshot.lanes) <= 70
    assert sum(lane.uses for lane in snapshot.lanes) == 2_001
    assert [lane.name for lane in snapshot.lanes if lane.alive] == ["main"]


def test_a_thread_of_the_same_name_goes_on_with_the_lane_of_its_predecessor(fake, actors):
    for _ in range(3):
        actor = actors("env-7")
        actor.enter(fake.profile("env_step"))
        actor.end()
    lanes = [lane for lane in fake.snapshot().lanes if lane.name == "env-7"]
    assert [(lane.uses, lane.alive) for lane in lanes] == [(3, False)]


def test_a_span_that_a_thread_leaves_open_ends_with_it(fake, actors):
    actor = actors()
    actor.enter(fake.profile("outer"))
    actor.enter(fake.profile("inner"))
    fake.tick(10)
    actor.end()
    fake.tick(100)
    snapshot = fake.snapshot()
    assert snapshot.open_spans == 0
    assert (snapshot.account("inner").calls, snapshot.account("inner").busy_ns) == (1, 10)
    assert snapshot.account("outer").self_ns == 0


def test_a_span_may_be_ended_by_another_thread(fake, actors):
    first, second = actors("a"), actors("b")
    with inside(second, fake.profile("earlier")):
        pass
    span = fake.profile("lock_held")
    with fake.profile("wait_for_it", wait=True):
        first.enter(span)
        fake.tick(10)
        second.exit(span)
        fake.tick(5)
    assert fake.ledger() == {"lock_held": 10, "wait_for_it": 5, "earlier": 0, "unattributed": 0}


def test_a_thread_that_has_recorded_nothing_ends_no_span(fake, actors):
    fake.profiler.disable()
    early, late = actors("early"), actors("late")
    early.enter(fake.profile("env_step"))
    fake.profiler.enable()
    late.enter(fake.profile("env_step"))
    fake.tick(10)
    early.exit(fake.profile("env_step"))
    fake.tick(5)
    late.exit(fake.profile("env_step"))
    account = fake.snapshot().account("env_step")
    assert (account.calls, account.max_ns) == (1, 15)


def test_profilers_do_not_see_each_others_spans(core):
    one, two = Fake(core), Fake(core)
    with one.profile("a"), two.profile("b"):
        one.tick(1)
        two.tick(2)
        with one.profile("c"):
            one.tick(3)
    assert one.ledger() == {"c": 3, "a": 1, "unattributed": 0}
    assert two.ledger() == {"b": 2, "unattributed": 0}


@pytest.mark.long
def test_a_profiler_can_be_dropped_while_threads_still_live(core, actors):
    actor = actors()
    for _ in range(3):
        fake = Fake(core)
        actor.enter(fake.profile("open"))
        span = fake.profile("kept")
        del fake
        gc.collect()
        with span:
            pass
    actor.end()


def test_the_main_thread_is_the_driver_even_if_another_one_enables(core, actors):
    profiler = Profiler(core, clock="fake")
    actor = actors("starter")
    actor.do(profiler.enable)
    actor.enter(profiler.profile("elsewhere"))
    with profiler.profile("here"):
        profiler.ledger.set_time(10, 10)
    snapshot = profiler.snapshot()
    snapshot.check()
    assert snapshot.account("here").ledger_ns == 10
    assert snapshot.account("elsewhere").ledger_ns == 0

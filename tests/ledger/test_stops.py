"""A process that is stopped neither works nor waits: that time is in no open span, but in an account of its own."""

from __future__ import annotations

import pytest
from ledger.helpers import inside

STOP = 10_000_000_000


def stopped(fake, wall=STOP):
    """The process is stopped for so long."""
    fake.tick(wall, cpu=0)
    book_stop(fake, fake.wall - wall)


def book_stop(fake, start):
    fake.profiler.ledger.stopped(fake.profile("suspended"), start, fake.wall)


@pytest.mark.parametrize("wait", [False, True])
def test_the_span_that_was_open_does_not_have_it(fake, wait):
    with fake.profile("env_wait", wait=wait):
        fake.tick(1_000, cpu=600)
        stopped(fake)
        fake.tick(500, cpu=100)
    snapshot = fake.snapshot()
    span, suspended = snapshot.account("env_wait"), snapshot.account("suspended")
    assert (span.ledger_ns, span.self_ns, span.busy_ns, span.max_ns, span.cpu_ns) == (1_500, 1_500, 1_500, 1_500, 700)
    assert (suspended.ledger_ns, suspended.cpu_ns, suspended.calls) == (STOP, 0, 1)
    assert suspended.category == "system"
    assert snapshot.wall_ns == STOP + 1_500
    assert snapshot.unattributed_ns == 0


def test_no_span_of_any_lane_has_lasted_through_it(fake, actors):
    step = fake.profile("env_step")
    with fake.profile("training"), fake.profile("env_wait", wait=True), inside(actors(), step):
        fake.tick(100)
        stopped(fake)
        fake.tick(100)
    assert fake.ledger() == {"suspended": STOP, "env_step": 200, "training": 0, "env_wait": 0, "unattributed": 0}
    assert fake.snapshot().account("env_step").busy_ns == 200
    assert fake.snapshot().account("training").max_ns == 200


def test_what_others_were_given_meanwhile_is_theirs(fake, actors):
    """Only the driver's process was stopped: a worker went on, and ended its step in that time."""
    actor, step = actors(), fake.profile("env_step")
    actor.enter(step)
    with fake.profile("env_wait", wait=True):
        start = fake.wall
        fake.tick(4_000, cpu=0)
        actor.exit(step)
        fake.tick(6_000, cpu=0)
        book_stop(fake, start)
    assert fake.ledger() == {"env_step": 4_000, "suspended": 6_000, "env_wait": 0, "unattributed": 0}


def test_what_is_booked_already_stays(fake):
    start = fake.wall
    with fake.profile("env_step"):
        fake.tick(1_000)
    fake.tick(200)
    book_stop(fake, start)
    assert fake.ledger() == {"env_step": 1_000, "suspended": 200, "unattributed": 0}


def test_an_iterations_duration_is_without_it_and_its_rows_still_sum_up(fake):
    ledger = fake.profiler.ledger
    ledger.iteration(False)
    with fake.profile("update"):
        fake.tick(700)
        stopped(fake)
    ledger.iteration(True)
    raw = fake.raw()
    assert (raw["iteration_min"], raw["iteration_max"]) == (700, 700)
    fake.snapshot()


def test_start_up_keeps_going(fake):
    ledger = fake.profiler.ledger
    ledger.begin_startup(fake.profile("startup"))
    fake.tick(50)
    stopped(fake)
    fake.tick(50)
    with fake.profile("env_step"):
        fake.tick(10)
    ledger.end_startup()
    assert fake.ledger() == {"startup": 110, "env_step": 0, "suspended": STOP, "unattributed": 0}


def test_a_phase_that_is_split_after_it_has_only_its_own_rest(fake):
    fake.profile("rollout").__enter__()
    with fake.profile("env_step"):
        fake.tick(10)
    fake.tick(300)
    stopped(fake)
    fake.tick(300, cpu=100)
    assert fake.profiler.ledger.split(fake.profile("rollout"), fake.profile("advantage")) == 600
    advantage = fake.snapshot().account("advantage")
    assert (advantage.self_ns, advantage.cpu_ns) == (600, 400)


def test_nothing_is_carved_while_recording_is_off(fake):
    fake.profiler.disable()
    stopped(fake)
    fake.profiler.enable()
    with fake.profile("env_step"):
        fake.tick(10)
    assert fake.ledger() == {"env_step": 10, "unattributed": 0}

"""The three rules: which account gets each instant of the driver, on planted programs."""

from __future__ import annotations

from contextlib import ExitStack

from ledger.helpers import inside


def test_while_the_driver_works_others_only_overlap(fake, actors):
    with inside(actors(), fake.profile("env_step")), fake.profile("update"):
        fake.tick(100)
    assert fake.ledger() == {"update": 100, "env_step": 0, "unattributed": 0}
    env_step = fake.snapshot().account("env_step")
    assert (env_step.self_ns, env_step.overlapped_ns) == (100, 100)


def test_a_wait_is_divided_equally_among_the_lanes_that_work(fake, actors):
    first, second = actors("a"), actors("b")
    with fake.profile("collect", wait=True):
        first.enter(fake.profile("env_step"))
        fake.tick(100)
        second.enter(fake.profile("render"))
        fake.tick(60)
        first.exit(fake.profile("env_step"))
        fake.tick(7)
        second.exit(fake.profile("render"))
        fake.tick(5)
    assert fake.ledger() == {"env_step": 130, "render": 37, "collect": 5, "unattributed": 0}
    snapshot = fake.snapshot()
    assert snapshot.account("env_step").overlapped_ns == 0
    assert snapshot.account("collect").waited_ns == 172


def test_what_a_division_leaves_over_is_not_lost(fake, actors):
    with fake.profile("collect", wait=True), ExitStack() as workers:
        for name in "abc":
            workers.enter_context(inside(actors(name), fake.profile("env_step")))
        for _ in range(10):
            fake.tick(1)
            fake.snapshot()
    assert fake.ledger() == {"env_step": 9, "collect": 1, "unattributed": 0}


def test_a_lane_that_waits_itself_has_no_claim(fake, actors):
    first, second = actors("a"), actors("b")
    step = fake.profile("env_step")
    with fake.profile("collect", wait=True), inside(first, step), inside(second, step):
        with inside(second, fake.profile("barrier", wait=True)):
            fake.tick(50)
        fake.tick(10)
    assert fake.ledger() == {"env_step": 60, "collect": 0, "barrier": 0, "unattributed": 0}
    assert fake.snapshot().account("barrier").waited_ns == 50


def test_the_innermost_span_of_a_worker_is_the_one_that_counts(fake, actors):
    worker = actors()
    with fake.profile("collect", wait=True), inside(worker, fake.profile("env_step")):
        fake.tick(10)
        with inside(worker, fake.profile("render")):
            fake.tick(20)
        fake.tick(30)
    assert fake.ledger() == {"env_step": 40, "render": 20, "collect": 0, "unattributed": 0}


def test_work_inside_a_wait_is_the_drivers_own_again(fake, actors):
    with inside(actors(), fake.profile("env_step")), fake.profile("collect", wait=True):
        fake.tick(10)
        with fake.profile("logging"):
            fake.tick(20)
        fake.tick(30)
    assert fake.ledger() == {"env_step": 40, "logging": 20, "collect": 0, "unattributed": 0}
    assert fake.snapshot().account("env_step").overlapped_ns == 20


def test_a_wait_without_any_work_is_idle_and_keeps_its_time(fake):
    with fake.profile("queue_get", wait=True):
        fake.tick(40)
    assert fake.ledger() == {"queue_get": 40, "unattributed": 0}


def test_workers_without_an_open_span_have_no_claim(fake, actors):
    with inside(actors(), fake.profile("env_step")):
        pass
    with fake.profile("join", wait=True):
        fake.tick(40)
    assert fake.ledger() == {"join": 40, "env_step": 0, "unattributed": 0}


def test_sixteen_threads_cannot_take_more_than_the_wall_time(fake, actors):
    with fake.profile("collect", wait=True), ExitStack() as workers:
        for i in range(16):
            workers.enter_context(inside(actors(f"env-{i}"), fake.profile("env_step")))
        fake.tick(1_600)
    env_step = fake.snapshot().account("env_step")
    assert env_step.busy_ns == 25_600, "what summing would have shown as 1600 %"
    assert env_step.ledger_ns == 1_600


def test_another_thread_can_be_the_driver(fake, actors):
    trainer = actors("trainer")
    with fake.profile("idle_main"):
        fake.tick(5)
        trainer.do(fake.profiler.drive)
        with inside(trainer, fake.profile("update")):
            fake.tick(70)
        fake.tick(3)
    assert fake.ledger() == {"update": 70, "idle_main": 5, "unattributed": 3}
    assert fake.snapshot().account("idle_main").overlapped_ns == 73


def test_the_driver_may_change_while_all_lanes_are_inside_spans(fake, actors):
    trainer = actors("trainer")
    with inside(trainer, fake.profile("update")):
        with fake.profile("collect", wait=True):
            fake.tick(10)
            trainer.do(fake.profiler.drive)
            fake.tick(100)
            fake.profiler.drive()
            fake.tick(1_000)
        fake.tick(1)
    assert fake.ledger() == {"update": 1_110, "collect": 0, "unattributed": 1}


def test_the_drivers_time_goes_on_after_its_thread_has_ended(fake, actors):
    trainer = actors("trainer")
    trainer.do(fake.profiler.drive)
    trainer.enter(fake.profile("update"))
    fake.tick(10)
    trainer.end()
    fake.tick(30)
    assert fake.ledger() == {"update": 10, "unattributed": 30}
    assert fake.snapshot().account("update").calls == 1

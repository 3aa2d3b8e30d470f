"""The driver rule: whose each instant of the driver is, on planted programs."""

from __future__ import annotations


def test_while_the_driver_works_others_only_overlap(fake, actors):
    worker = actors()
    worker.enter(fake.profile("env_step"))
    with fake.profile("update"):
        fake.tick(100)
    worker.exit(fake.profile("env_step"))
    assert fake.ledger() == {"update": 100, "env_step": 0, "unattributed": 0}
    env_step = fake.snapshot().account("env_step")
    assert (env_step.self_ns, env_step.overlapped_ns) == (100, 100)


def test_a_wait_is_divided_equally_among_those_who_work(fake, actors):
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
    workers = [actors(name) for name in "abc"]
    with fake.profile("collect", wait=True):
        for worker in workers:
            worker.enter(fake.profile("env_step"))
        for _ in range(10):
            fake.tick(1)
            fake.snapshot()
        for worker in workers:
            worker.exit(fake.profile("env_step"))
    assert fake.ledger() == {"env_step": 9, "collect": 1, "unattributed": 0}


def test_a_lane_that_waits_itself_has_no_claim(fake, actors):
    first, second = actors("a"), actors("b")
    with fake.profile("collect", wait=True):
        first.enter(fake.profile("env_step"))
        second.enter(fake.profile("env_step"))
        second.enter(fake.profile("barrier", wait=True))
        fake.tick(50)
        second.exit(fake.profile("barrier", wait=True))
        fake.tick(10)
        first.exit(fake.profile("env_step"))
        second.exit(fake.profile("env_step"))
    assert fake.ledger() == {"env_step": 60, "collect": 0, "barrier": 0, "unattributed": 0}
    assert fake.snapshot().account("barrier").waited_ns == 50


def test_the_innermost_span_of_a_worker_is_the_one_that_counts(fake, actors):
    worker = actors()
    with fake.profile("collect", wait=True):
        worker.enter(fake.profile("env_step"))
        fake.tick(10)
        worker.enter(fake.profile("render"))
        fake.tick(20)
        worker.exit(fake.profile("render"))
        fake.tick(30)
        worker.exit(fake.profile("env_step"))
    assert fake.ledger() == {"env_step": 40, "render": 20, "collect": 0, "unattributed": 0}


def test_work_inside_a_wait_is_the_drivers_own_again(fake, actors):
    worker = actors()
    worker.enter(fake.profile("env_step"))
    with fake.profile("collect", wait=True):
        fake.tick(10)
        with fake.profile("logging"):
            fake.tick(20)
        fake.tick(30)
    worker.exit(fake.profile("env_step"))
    assert fake.ledger() == {"env_step": 40, "logging": 20, "collect": 0, "unattributed": 0}
    assert fake.snapshot().account("env_step").overlapped_ns == 20


def test_a_wait_that_nobody_works_in_is_idle_and_stays_its_own(fake):
    with fake.profile("queue_get", wait=True):
        fake.tick(40)
    assert fake.ledger() == {"queue_get": 40, "unattributed": 0}


def test_workers_without_an_open_span_have_no_claim(fake, actors):
    worker = actors()
    worker.enter(fake.profile("env_step"))
    worker.exit(fake.profile("env_step"))
    with fake.profile("join", wait=True):
        fake.tick(40)
    assert fake.ledger() == {"join": 40, "env_step": 0, "unattributed": 0}


def test_sixteen_threads_cannot_take_more_than_the_wall_time(fake, actors):
    workers = [actors(f"env-{i}") for i in range(16)]
    with fake.profile("collect", wait=True):
        for worker in workers:
            worker.enter(fake.profile("env_step"))
        fake.tick(1_600)
        for worker in workers:
            worker.exit(fake.profile("env_step"))
    snapshot = fake.snapshot()
    env_step = snapshot.account("env_step")
    assert env_step.busy_ns == 25_600, "what summing would have shown as 1600 %"
    assert env_step.ledger_ns == 1_600


def test_another_thread_can_be_the_driver(fake, actors):
    trainer = actors("trainer")
    with fake.profile("idle_main"):
        fake.tick(5)
        trainer.do(fake.profiler.drive)
        trainer.enter(fake.profile("update"))
        fake.tick(70)
        trainer.exit(fake.profile("update"))
        fake.tick(3)
    assert fake.ledger() == {"update": 70, "idle_main": 5, "unattributed": 3}
    assert fake.snapshot().account("idle_main").overlapped_ns == 73


def test_the_driver_may_change_while_everybody_is_inside_spans(fake, actors):
    trainer = actors("trainer")
    trainer.enter(fake.profile("update"))
    with fake.profile("collect", wait=True):
        fake.tick(10)
        trainer.do(fake.profiler.drive)
        fake.tick(100)
        fake.profiler.drive()
        fake.tick(1_000)
    fake.tick(1)
    trainer.exit(fake.profile("update"))
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

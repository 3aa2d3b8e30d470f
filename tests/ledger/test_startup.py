"""Start-up: open until the driver's first span, and no part of the training lies inside it."""

from __future__ import annotations

import asyncio
import os

import pytest
from fakes import Fake
from ledger.helpers import inside

from rlprof.ledger.rows import MARK, unpack_gains


def begin(fake: Fake) -> None:
    fake.profiler.ledger.begin_startup(fake.profile("startup"))


@pytest.fixture
def started(fake: Fake) -> None:
    """Start-up has lasted for 100 ns."""
    begin(fake)
    fake.tick(100)


def parents(fake: Fake, operation: str) -> list[str | None]:
    nodes = {node.id: node for node in fake.snapshot().nodes}
    return [nodes[node.parent].operation for node in nodes.values() if node.operation == operation]


@pytest.mark.usefixtures("started")
def test_the_first_span_ends_it(fake):
    with fake.profile("env_step"):
        fake.tick(10)
    fake.tick(1)
    assert fake.ledger() == {"startup": 100, "env_step": 10, "unattributed": 1}
    assert parents(fake, "env_step") == [None]
    assert fake.snapshot().account("startup").calls == 1


@pytest.mark.usefixtures("started")
def test_without_any_span_it_lasts_to_the_end(fake):
    assert fake.ledger() == {"startup": 100, "unattributed": 0}


@pytest.mark.usefixtures("started")
def test_a_wait_is_part_of_it(fake, actors):
    for _ in range(2):
        with fake.profile("thread_wait", wait=True):
            fake.tick(5)
    fake.tick(20)
    with fake.profile("env_step"):
        fake.tick(10)
    assert fake.ledger() == {"startup": 130, "thread_wait": 0, "env_step": 10, "unattributed": 0}
    assert parents(fake, "thread_wait") == ["startup"]


def test_work_of_others_while_it_waited_is_part_of_it(fake, actors):
    begin(fake)
    with inside(actors(), fake.profile("load_maps")):
        with fake.profile("thread_wait", wait=True):
            fake.tick(50)
        fake.profiler.ledger.end_startup()
        with fake.profile("thread_wait", wait=True):
            fake.tick(8)
    assert fake.ledger() == {"startup": 50, "load_maps": 8, "thread_wait": 0, "unattributed": 0}
    assert fake.snapshot().account("load_maps").self_ns == 58


@pytest.mark.usefixtures("started")
def test_it_lasts_until_the_training_begins_whatever_was_timed_before(fake):
    with fake.profile("env_reset"):
        fake.tick(10)
        with fake.profile("env_wait", wait=True):
            fake.tick(30)
    with fake.profiler.iteration():
        with fake.profile("env_reset"):
            fake.tick(4)
    assert fake.ledger() == {"startup": 140, "env_reset": 4, "env_wait": 0, "unattributed": 0}
    assert fake.snapshot().account("env_reset").calls == 2
    marks, gains = fake.profiler.drain_iterations()
    assert len(marks) == MARK.size
    assert [gain.ledger for gain in unpack_gains(gains)] == [4]


@pytest.mark.usefixtures("started")
def test_a_span_that_is_open_when_the_training_begins_goes_on_in_it(fake):
    with fake.profile("main"):
        fake.tick(20)
        fake.profiler.ledger.end_startup()
        fake.tick(3)
    assert fake.ledger() == {"startup": 120, "main": 3, "unattributed": 0}


@pytest.mark.usefixtures("started")
def test_the_training_may_begin_inside_a_wait(fake):
    with fake.profile("thread_wait", wait=True):
        fake.tick(20)
        fake.profiler.ledger.end_startup()
        fake.tick(3)
    fake.tick(1)
    assert fake.ledger() == {"startup": 120, "thread_wait": 3, "unattributed": 1}
    assert None in parents(fake, "thread_wait")


def test_another_threads_span_does_not_end_it(fake, actors):
    begin(fake)
    with inside(actors(), fake.profile("prefetch")):
        fake.tick(50)
    fake.tick(50)
    assert fake.ledger()["startup"] == 100


@pytest.mark.usefixtures("started")
def test_an_iteration_ends_it(fake):
    with fake.profiler.iteration():
        fake.tick(10)
    assert fake.ledger() == {"startup": 100, "unattributed": 10}


@pytest.mark.usefixtures("started")
def test_what_is_unattributed_before_the_training_begins_is_start_up_too(fake):
    with fake.profile("buffer_reset"):
        fake.tick(1)
    fake.tick(50, cpu=20)
    with fake.profiler.iteration():
        fake.tick(10)
        with fake.profile("env_step"):
            fake.tick(5)
    fake.tick(7)
    fake.profiler.ledger.end_startup()
    assert fake.ledger() == {"startup": 151, "buffer_reset": 0, "env_step": 5, "unattributed": 17}
    account = fake.snapshot().account("startup")
    assert (account.calls, account.max_ns, account.cpu_ns) == (2, 100, 120)


@pytest.mark.usefixtures("started")
def test_it_ends_only_once(fake):
    for _ in range(2):
        fake.profiler.ledger.end_startup()
        fake.tick(10)
    assert fake.ledger() == {"startup": 100, "unattributed": 20}
    assert fake.snapshot().account("startup").calls == 1


@pytest.mark.usefixtures("started")
def test_a_task_on_the_drivers_thread_ends_it(fake):

    async def train():
        with fake.profile("env_step"):
            fake.tick(10)

    asyncio.run(train())
    assert fake.ledger()["startup"] == 100
    assert fake.ledger()["env_step"] == 10


@pytest.mark.usefixtures("started")
def test_a_new_driver_ends_it(fake, actors):
    actors().do(fake.profiler.drive)
    fake.tick(10)
    assert fake.ledger() == {"startup": 100, "unattributed": 10}


@pytest.mark.usefixtures("started")
def test_a_span_of_that_name_in_the_training_is_an_ordinary_one(fake):
    with fake.profile("startup"):
        with fake.profile("env_reset"):
            fake.tick(10)
        with fake.profile("env_reset"):
            fake.tick(10)
    assert fake.snapshot().account("startup").calls == 2
    assert parents(fake, "env_reset") == ["startup"]


def test_only_the_driver_has_one(fake, actors):
    actors().do(lambda: begin(fake))
    fake.tick(10)
    assert fake.ledger() == {"unattributed": 10}


def test_it_does_not_begin_while_nothing_is_recorded(fake):
    fake.profiler.disable()
    begin(fake)
    fake.profiler.enable()
    fake.tick(10)
    assert fake.ledger() == {"unattributed": 10}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_has_none(fake):
    begin(fake)
    child = os.fork()
    if child == 0:
        fake.tick(5)
        with fake.profile("env_step"):
            fake.tick(1)
        os._exit(0 if fake.ledger() == {"env_step": 1, "unattributed": 5} else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    fake.tick(5)
    assert fake.ledger() == {"startup": 5, "unattributed": 0}

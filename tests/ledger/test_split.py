"""A span that turns out to have ended earlier: what came after it is another operation's, its CPU time included."""

from __future__ import annotations

import asyncio

import pytest


def split(fake, outer="rollout", rest="advantage"):
    return fake.profiler.ledger.split(fake.profile(outer), fake.profile(rest))


def begin_rollout(fake):
    """With a step of 10 ns."""
    fake.profile("rollout").__enter__()
    with fake.profile("env_step"):
        fake.tick(10)


def cpu(fake):
    return {account.operation: (account.self_ns, account.cpu_ns) for account in fake.snapshot().accounts}


def test_the_rest_is_on_the_cpu_as_long_as_it_was_and_the_phase_too(fake):
    fake.profile("rollout").__enter__()
    fake.tick(100, cpu=90)
    with fake.profile("env_step"):
        fake.tick(1_000, cpu=400)
    fake.tick(3_000, cpu=0)  # a sleep between rollout and update
    assert split(fake) == 3_000
    assert cpu(fake) == {"rollout": (100, 90), "env_step": (1_000, 400), "advantage": (3_000, 0)}


def test_a_rest_that_computes_counts_as_computing_though_the_phase_slept(fake):
    begin_rollout(fake)
    fake.tick(500, cpu=0)
    with fake.profile("env_step"):
        fake.tick(10)
    fake.tick(700)
    assert split(fake) == 700
    assert cpu(fake) == {"rollout": (500, 0), "env_step": (20, 20), "advantage": (700, 700)}


@pytest.mark.parametrize("looked_at", [False, True])
def test_looking_at_the_account_between_changes_nothing(fake, looked_at):
    fake.profile("rollout").__enter__()
    with fake.profile("env_step"):
        fake.tick(10, cpu=3)
    for wall, on_cpu in ((40, 10), (60, 60), (100, 0)):
        fake.tick(wall, on_cpu)
        if looked_at:
            fake.snapshot()
    assert split(fake) == 200
    assert cpu(fake) == {"env_step": (10, 3), "advantage": (200, 70), "rollout": (0, 0)}


def test_without_anything_inside_all_of_it_is_the_rest(fake):
    fake.tick(50, cpu=0)
    fake.profile("rollout").__enter__()
    fake.tick(30, cpu=10)
    assert split(fake) == 30
    assert cpu(fake)["advantage"] == (30, 10)


def test_what_an_ended_iteration_counts_stays_and_its_cpu_time_too(fake):
    ledger = fake.profiler.ledger
    ledger.iteration(False)
    begin_rollout(fake)
    fake.tick(1_000, cpu=0)
    ledger.iteration(False)
    fake.tick(200, cpu=150)
    assert split(fake) == 200
    assert cpu(fake) == {"rollout": (1_000, 0), "env_step": (10, 10), "advantage": (200, 150)}


def test_a_rest_in_which_the_event_loop_was_idle_moves_with_its_waiting(fake):
    async def train():
        begin_rollout(fake)
        await asyncio.sleep(0)
        fake.tick(300, cpu=0)
        await asyncio.sleep(0)
        assert split(fake) >= 300

    async def main():
        task = asyncio.create_task(train())
        await asyncio.sleep(0)
        fake.tick(1_000, cpu=0)
        await task

    asyncio.run(main())
    accounts = {account.operation: account for account in fake.snapshot().accounts}
    assert all(account.ledger_ns >= 0 for account in accounts.values())
    rest = accounts["advantage"]
    assert (rest.self_ns, rest.cpu_ns, rest.waited_ns) == (1_300, 0, 1_000)
    assert accounts["rollout"].waited_ns == 0


def test_nothing_from_before_a_change_of_the_driver_moves(fake, actors):
    """A worker works beside the driver, drives for an instant, and works on while the driver is busy."""
    worker = actors()
    span = fake.profile("policy_forward")
    worker.enter(span)
    fake.tick(5)
    worker.do(fake.profiler.drive)
    fake.profiler.drive()
    with fake.profile("env_step"):
        fake.tick(3)
        assert worker.do(lambda: fake.profiler.ledger.split(span, fake.profile("rest"))) == 3
    snapshot = fake.snapshot()
    assert [snapshot.account(name).overlapped_ns for name in ("policy_forward", "rest")] == [5, 3]
    assert [snapshot.account(name).ledger_ns for name in ("policy_forward", "rest")] == [0, 0]

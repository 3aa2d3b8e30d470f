"""asyncio: one lane per task, and the time in which no task runs."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import time

import pytest
from fakes import CORES, Fake
from ledger.helpers import in_thread, inside, run_tasks

from rlprof import Profiler


def tick_while_idle(fake: Fake, ns: int) -> None:
    """Advance the fake clock once from inside the event loop, where `select` would sleep."""
    selector = asyncio.get_running_loop()._selector  # type: ignore[attr-defined]
    select = selector.select

    def slow_select(timeout):
        fake.tick(ns, cpu=0)
        selector.select = select
        return select(timeout)

    selector.select = slow_select


def test_tasks_that_interleave_keep_their_own_trees(fake):
    async def task(name: str, ns: int) -> None:
        with fake.profile(name):
            for _ in range(3):
                with fake.profile(f"{name} inner"):
                    fake.tick(ns)
                    await asyncio.sleep(0)

    run_tasks(task("a", 10), task("b", 100))
    snapshot = fake.snapshot()
    parents = {node.operation: snapshot.nodes[node.parent].operation for node in snapshot.nodes if node.operation}
    assert parents == {"a": None, "a inner": "a", "b": None, "b inner": "b"}
    assert snapshot.account("a inner").calls == snapshot.account("b inner").calls == 3
    ledger = fake.ledger()
    assert ledger["a inner"] == 30
    assert ledger["b inner"] == 300
    assert ledger["unattributed"] == ledger["a"] == ledger["b"] == 0


def test_a_task_resumed_without_a_new_span_gets_its_time(fake):
    async def task(name: str, first: int, second: int) -> None:
        with fake.profile(name):
            fake.tick(first)
            await asyncio.sleep(0)
            fake.tick(second)

    run_tasks(task("a", 1, 10), task("b", 100, 1_000))
    assert fake.ledger() == {"b": 1_100, "a": 11, "unattributed": 0}
    snapshot = fake.snapshot()
    assert snapshot.account("a").cpu_ns == 11
    assert snapshot.account("a").waited_ns == 100


def test_time_in_which_no_task_runs_is_divided_among_those_suspended_in_a_span(fake):
    async def waits(name: str, event: asyncio.Event) -> None:
        with fake.profile(name):
            await event.wait()

    async def main() -> None:
        event = asyncio.Event()
        tasks = [asyncio.create_task(waits(name, event)) for name in ("a", "b")]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        tick_while_idle(fake, 90)
        await asyncio.sleep(0)
        event.set()
        await asyncio.gather(*tasks)

    asyncio.run(main())
    assert fake.ledger() == {"a": 45, "b": 45, "unattributed": 0}
    assert fake.snapshot().account("a").cpu_ns == 0


def test_a_worker_gets_the_time_the_loop_idles(fake, actors):
    worker = actors()

    async def waits() -> None:
        with fake.profile("await_env"):
            await asyncio.sleep(0)

    async def main() -> None:
        with inside(worker, fake.profile("env_step")):
            task = asyncio.create_task(waits())
            await asyncio.sleep(0)
            tick_while_idle(fake, 90)
            await task

    asyncio.run(main())
    assert fake.ledger() == {"env_step": 90, "await_env": 0, "unattributed": 0}


def test_a_task_with_no_span_open_works_for_what_its_thread_has_open(fake):
    async def main() -> None:
        fake.tick(1)
        with fake.profile("inside"):
            fake.tick(10)
        fake.tick(100)
        await asyncio.sleep(0)
        fake.tick(1_000)

    with fake.profile("collect"):
        asyncio.run(main())
    assert fake.ledger() == {"collect": 1_101, "inside": 10, "unattributed": 0}


def test_tasks_are_followed_again_after_a_pause(fake):
    async def task(name: str) -> None:
        with fake.profile(name):
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            fake.tick(10)

    async def main() -> None:
        tasks = [asyncio.create_task(task(name)) for name in ("a", "b")]
        await asyncio.sleep(0)
        fake.profiler.disable()
        fake.tick(1_000)
        fake.profiler.enable()
        await asyncio.gather(*tasks)

    asyncio.run(main())
    assert fake.ledger() == {"a": 10, "b": 10, "unattributed": 0}


def test_after_the_loop_the_thread_has_its_own_stack_again(fake):
    async def main() -> None:
        with fake.profile("task"):
            fake.tick(1)
            await asyncio.sleep(0)
            fake.tick(2)

    with fake.profile("training"):
        fake.tick(10)
        asyncio.run(main())
        fake.tick(20)
        with fake.profile("update"):
            fake.tick(40)
    fake.tick(80)
    assert fake.ledger() == {"update": 40, "training": 30, "task": 3, "unattributed": 80}


def test_a_context_that_is_no_task_stays_on_its_thread(fake):
    def inner() -> None:
        with fake.profile("inner"):
            fake.tick(1)

    with fake.profile("outer"):
        contextvars.copy_context().run(inner)
    snapshot = fake.snapshot()
    assert len(snapshot.lanes) == 1
    assert snapshot.account("outer").wall_ns == 1


def test_a_task_that_is_cancelled_inside_a_span_ends_it(fake):
    async def sleeps() -> None:
        with fake.profile("forever"):
            await asyncio.sleep(1_000)

    async def main() -> None:
        task = asyncio.create_task(sleeps())
        await asyncio.sleep(0)
        fake.tick(7)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    snapshot = fake.snapshot()
    assert (snapshot.open_spans, snapshot.account("forever").calls) == (0, 1)


def test_thousands_of_tasks_leave_a_bounded_number_of_lanes(profiler):
    async def task() -> None:
        with profiler.profile("request"):
            await asyncio.sleep(0)

    async def main() -> None:
        for _ in range(300):
            await asyncio.gather(*(task() for _ in range(10)))

    asyncio.run(main())
    snapshot = profiler.snapshot()
    snapshot.check()
    assert snapshot.account("request").calls == 3_000
    assert len(snapshot.lanes) <= 90


def test_a_loop_on_another_thread_has_lanes_there(profiler):
    async def task() -> None:
        with profiler.profile("request"):
            await asyncio.sleep(0)
            with profiler.profile("inner"):
                await asyncio.sleep(0)

    in_thread(lambda: run_tasks(*(task() for _ in range(5))), name="loop")
    snapshot = profiler.snapshot()
    snapshot.check()
    assert {lane.on_driver for lane in snapshot.lanes if lane.kind == "task"} == {False}
    assert snapshot.account("request").calls == snapshot.account("inner").calls == 5
    assert snapshot.account("request").ledger_ns == 0


def test_asyncio_is_left_as_it_was(core):
    before = asyncio.events.Handle._run
    profiler = Profiler(core)
    profiler.enable()

    async def main() -> None:
        with profiler.profile("a"):
            await asyncio.sleep(0)
        assert asyncio.events.Handle._run is not before

    asyncio.run(main())
    profiler.disable()
    assert asyncio.events.Handle._run is before


def test_errors_in_tasks_are_what_they_were(profiler):
    async def fails() -> None:
        with profiler.profile("a"):
            await asyncio.sleep(0)
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        asyncio.run(fails())


def test_a_task_where_an_ended_one_was_in_memory_keeps_its_lane(fake):
    """Tasks are known by their addresses, which are used again."""

    async def task() -> None:
        with fake.profile("request"):
            await asyncio.sleep(0)
            fake.tick(10)

    for tasks in (10, 300, 20, 300):
        run_tasks(*(task() for _ in range(tasks)))
    assert fake.ledger() == {"request": 6_300, "unattributed": 0}


def test_many_tasks_at_once_share_a_tree(fake):
    """64 tasks of a group have a tree of their own. Records of the others are as exact, with one row per place."""

    async def task(i: int) -> None:
        with fake.profile("request"):
            await asyncio.sleep(0)
            fake.tick(10)
            with fake.profile("inner"):
                fake.tick(i)
                await asyncio.sleep(0)

    run_tasks(*(task(i) for i in range(1_000)))
    snapshot = fake.snapshot()
    assert len(snapshot.lanes) == 1 + 64 + 1
    assert len(snapshot.nodes) <= 3 * 66
    shared = [lane for lane in snapshot.lanes if lane.name == "Task-#"]
    assert [lane.uses for lane in shared] == [1_000 - 64]
    assert (snapshot.account("request").calls, snapshot.account("inner").calls) == (1_000, 1_000)
    assert fake.ledger() == {"inner": 499_500, "request": 10_000, "unattributed": 0}
    run_tasks(*(task(i) for i in range(1_000)))
    assert len(fake.snapshot().lanes) == 66


def test_tasks_of_ever_new_names_leave_a_bounded_number_of_lanes(fake):
    async def task() -> None:
        with fake.profile("request"):
            await asyncio.sleep(0)
            fake.tick(1)

    async def main() -> None:
        for i in range(3_000):
            name = "".join(chr(ord("a") + int(digit)) for digit in str(i))
            await asyncio.create_task(task(), name=name)

    asyncio.run(main())
    snapshot = fake.snapshot()
    assert len(snapshot.lanes) <= 1_025
    assert next(lane.uses for lane in snapshot.lanes if lane.name == "other tasks") >= 1_900
    assert fake.ledger() == {"request": 3_000, "unattributed": 0}


def crowd_on(core: str) -> list[object]:
    """Everything that is recorded of 200 tasks on another thread, which becomes the driver while they are suspended."""
    fake = Fake(core)
    seen: list[object] = []

    async def task(i: int) -> None:
        with fake.profile(("env_step", "render")[i % 2], wait=i % 7 == 0):
            fake.tick(i)
            await asyncio.sleep(0)
            fake.tick(3)
            with fake.profile("inner"):
                await asyncio.sleep(0)
                fake.tick(i)

    async def main() -> None:
        tasks = [asyncio.create_task(task(i), name=f"{'ab'[i % 3 == 0]}{i}") for i in range(200)]
        for moment in range(4):
            seen.append(fake.raw())
            seen.append(fake.profiler.ledger.iteration(False))
            seen.append(fake.profiler.drain_iterations())
            if moment == 2:
                fake.profiler.drive()
            await asyncio.sleep(0)
        await asyncio.gather(*tasks)

    for _ in range(2):
        in_thread(lambda: asyncio.run(main()), name="loop")
        fake.snapshot()
        seen.append(fake.raw())
    fake.profiler.disable()
    return seen


def test_both_cores_keep_the_same_account_of_a_crowd_of_tasks():
    assert len({repr(crowd_on(core)) for core in CORES}) == 1


def test_what_following_tasks_costs_is_the_drivers_time_however_long_they_are_suspended(fake):
    planted, steps, each = 7, 5, 20

    async def task() -> None:
        with fake.profile("request"):
            for _ in range(steps):
                await asyncio.sleep(0)
                fake.tick(1_000)

    async def main() -> None:
        with fake.profile("first"):  # tasks are followed from here on
            fake.profiler.ledger.step_cost = planted
        await asyncio.gather(*(task() for _ in range(each)))

    asyncio.run(main())
    fake.tick(10_000)
    rlprof = fake.snapshot().rlprof_ns
    assert rlprof % planted == 0
    assert rlprof >= planted * each * (steps + 1)


@pytest.mark.long
@pytest.mark.figures
def test_a_task_costs_the_same_however_many_there_are(core):
    """In CPU time. It was ten times as much with 20,000 at once as with 500."""

    def cpu_of(at_once: int, times: int) -> float:
        profiler = Profiler(core)
        profiler.enable()

        async def task() -> None:
            with profiler.profile("request"):
                await asyncio.sleep(0)

        began = time.thread_time()
        for _ in range(times):
            run_tasks(*(task() for _ in range(at_once)))
        taken = time.thread_time() - began
        profiler.disable()
        profiler.snapshot().check()
        return taken

    # A collection walks every object of the process, torch's too, and comes the more often the more tasks live.
    gc.disable()
    try:
        ratios = [cpu_of(20_000, 1) / cpu_of(500, 40) for _ in range(3)]
    finally:
        gc.enable()
    assert min(ratios) < 3, ratios

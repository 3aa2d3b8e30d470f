"""profile_function on every kind of function."""

from __future__ import annotations

import asyncio
import copy
import inspect
import pickle

import pytest

import rlprof
from rlprof import Profiler, profile_function


@profile_function("module_level")
def module_level(x: int, *, y: int = 2) -> int:
    """Adds."""
    return x + y


class Agent:
    @profile_function("act")
    def act(self, observation: int = 5) -> tuple[Agent, int]:
        return self, observation

    @staticmethod
    @profile_function("static_inside")
    def static_inside(x: int) -> int:
        return x

    @profile_function("static_outside")
    @staticmethod
    def static_outside(x: int) -> int:
        return x

    @profile_function("class_outside")
    @classmethod
    def class_outside(cls) -> type:
        return cls


def test_a_function_is_timed_and_returns_what_it_did(fake):
    @fake.profiler.profile_function("add")
    def add(x, y=1, *rest, z=0):
        fake.tick(10)
        return x + y + z + sum(rest)

    assert (add(1), add(1, 2), add(1, 2, 3, z=4)) == (2, 3, 10)
    assert fake.ledger() == {"add": 30, "unattributed": 0}
    assert fake.snapshot().account("add").calls == 3


def test_without_a_name_it_is_the_functions_own(fake):
    @fake.profiler.profile_function
    def one():
        fake.tick(1)

    @fake.profiler.profile_function(category="policy")
    def two():
        fake.tick(2)

    one(), two()
    assert fake.ledger() == {"two": 2, "one": 1, "unattributed": 0}
    assert fake.snapshot().account("two").category == "policy"


def test_it_looks_like_the_function():
    assert module_level.__name__ == "module_level"
    assert module_level.__doc__ == "Adds."
    assert module_level.__module__ == __name__
    assert str(inspect.signature(module_level)) == "(x: 'int', *, y: 'int' = 2) -> 'int'"
    assert module_level.__wrapped__(1) == 3
    assert callable(module_level)


def test_it_pickles_and_copies_as_the_function_does():
    assert pickle.loads(pickle.dumps(module_level)) is module_level
    assert copy.deepcopy(module_level) is module_level
    assert pickle.loads(pickle.dumps(Agent().act))()[1] == 5


def test_what_holds_spans_can_be_pickled_and_copied(core):
    profiler = rlprof.get_profiler()
    for thing in (profiler, rlprof.profile, rlprof.profile("a", wait=True), profiler.enable):
        assert pickle.loads(pickle.dumps(thing)) == thing
        assert copy.copy(thing) == thing
        assert copy.deepcopy(thing) == thing
    own = pickle.loads(pickle.dumps(Profiler(core)))
    assert own.core == core
    assert own is not profiler


def test_methods_bind_and_count_whichever_way_they_are_reached():
    profiler = rlprof.get_profiler()
    profiler.reset()
    profiler.enable()
    try:
        agent = Agent()
        bound = agent.act
        assert agent.act(1) == (agent, 1)
        assert bound() == (agent, 5)
        assert Agent.act(agent, observation=3) == (agent, 3)
        assert inspect.ismethod(bound)
        assert agent.static_inside(1) == Agent.static_inside(1) == 1
        assert agent.static_outside(1) == Agent.static_outside(1) == 1
        assert agent.class_outside() is Agent.class_outside() is Agent
        snapshot = profiler.snapshot()
    finally:
        profiler.disable()
        profiler.reset()
    calls = {account.operation: account.calls for account in snapshot.accounts}
    assert calls == {"act": 3, "static_inside": 2, "static_outside": 2, "class_outside": 2}


def test_an_exception_passes_through_and_is_timed(fake):
    @fake.profiler.profile_function("fails")
    def fails():
        fake.tick(1)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert fake.snapshot().account("fails").calls == 1


def test_a_coroutine_is_timed_to_its_end_and_stays_one(fake):
    @fake.profiler.profile_function("fetch")
    async def fetch(x):
        fake.tick(1)
        await asyncio.sleep(0)
        fake.tick(2)
        return x

    assert inspect.iscoroutinefunction(fetch)
    assert asyncio.run(fetch(7)) == 7
    assert fake.snapshot().account("fetch").calls == 1
    assert fake.ledger()["fetch"] == 3


def test_a_generator_is_timed_only_while_it_runs(fake):
    @fake.profiler.profile_function("batches")
    def batches():
        for i in range(3):
            fake.tick(10)
            yield i

    assert inspect.isgeneratorfunction(batches)
    for _ in batches():
        fake.tick(100)
    account = fake.snapshot().account("batches")
    assert (account.ledger_ns, account.calls, account.max_ns) == (30, 4, 10)
    assert fake.ledger()["unattributed"] == 300


def test_a_generator_keeps_its_whole_protocol(fake):
    received = []

    @fake.profiler.profile_function("talk")
    def talk():
        try:
            while True:
                try:
                    received.append((yield len(received)))
                except KeyError as error:
                    received.append(error)
                    if len(received) > 3:
                        return "done"
        finally:
            fake.tick(5)

    generator = talk()
    assert next(generator) == 0
    assert generator.send("hello") == 1
    assert generator.throw(KeyError("k")) == 2
    generator.close()
    assert received[0] == "hello"
    assert fake.snapshot().account("talk").ledger_ns == 5

    generator = talk()
    next(generator)
    generator.throw(KeyError("a"))
    with pytest.raises(StopIteration) as stop:
        generator.throw(KeyError("b"))
    assert stop.value.value == "done"


def test_an_async_generator_is_timed_only_while_it_runs(fake):
    @fake.profiler.profile_function("stream")
    async def stream():
        for i in range(2):
            fake.tick(10)
            await asyncio.sleep(0)
            received = yield i
            assert received in (None, "sent")

    async def main():
        items = []
        async for item in stream():
            fake.tick(100)
            items.append(item)
        generator = stream()
        await generator.__anext__()
        await generator.asend("sent")
        await generator.aclose()
        return items

    assert inspect.isasyncgenfunction(stream)
    assert asyncio.run(main()) == [0, 1]
    assert fake.ledger() == {"stream": 40, "unattributed": 200}


def test_a_span_that_a_generator_holds_open_over_a_yield_stays_open(fake):
    def numbers(name):
        with fake.profile(name):
            fake.tick(1)
            yield 1
            fake.tick(2)
            yield 2

    first, second = numbers("first"), numbers("second")
    next(first), next(second)
    with fake.profile("consume"):
        fake.tick(10)
    next(first)
    first.close()
    second.close()
    snapshot = fake.snapshot()
    assert snapshot.open_spans == 0
    assert {a.operation: a.calls for a in snapshot.accounts} == {"first": 1, "second": 1, "consume": 1}
    assert snapshot.account("consume").ledger_ns == 10
    assert snapshot.wall_ns == 14


@pytest.mark.parametrize("thing", [Agent, 3, "name", None])
def test_only_functions_can_be_profiled(core, thing):
    with pytest.raises(TypeError, match="only functions can be profiled"):
        Profiler(core).profile("x")(thing)


def test_switched_off_it_only_calls(core):
    profiler = Profiler(core)

    @profiler.profile_function("off")
    def off(x):
        return x

    assert off(3) == 3
    assert profiler.snapshot().accounts == []

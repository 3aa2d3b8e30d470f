"""Random programs: the C core, its twin, and a third account that follows the rules instant by instant."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pytest
from fakes import CORES, Actor, Fake
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

OPERATIONS = ("env_step", "policy_forward", "update", "render")
WORKERS = ("worker-0", "worker-1", "worker-2")
LANES = ("main", *WORKERS)

Command = tuple[Any, ...]

commands = st.one_of(
    st.tuples(st.just("enter"), st.sampled_from(LANES), st.sampled_from(OPERATIONS), st.booleans()),
    st.tuples(st.just("enter"), st.sampled_from(LANES), st.sampled_from(OPERATIONS), st.just(False)),
    # Mostly the innermost span ends, sometimes one further out.
    st.tuples(st.just("exit"), st.sampled_from(LANES), st.sampled_from((0, 0, 0, 1, 2))),
    st.tuples(st.just("enter"), st.just("main"), st.sampled_from(OPERATIONS), st.just(True)),
    st.tuples(st.just("tick"), st.integers(0, 1_000), st.integers(0, 1_000)),
    st.tuples(st.just("tick"), st.integers(1, 9), st.just(9)),
    st.tuples(st.just("snapshot")),
    st.tuples(st.just("iteration"), st.booleans()),
)
rare = st.one_of(
    st.tuples(st.sampled_from(("stop", "start", "reset"))),
    st.tuples(st.just("drive"), st.sampled_from(LANES)),
    st.tuples(st.just("end"), st.sampled_from(WORKERS)),
)
# Short programs hardly ever have a worker at work while the driver waits.
programs = st.lists(st.one_of(*[commands] * 6, rare), min_size=25, max_size=60)


def innermost_like(spans: list[Any], depth: int) -> int:
    """Equal spans cannot be told apart: the innermost of them is the one that ends."""
    return max(i for i, span in enumerate(spans) if span is spans[-1 - depth])


class Machine:
    """Runs a program on one core; each lane but the main one is a real thread."""

    def __init__(self, core: str) -> None:
        self.fake = Fake(core)
        self.actors: dict[str, Actor] = {}
        self.open: defaultdict[str, list[Any]] = defaultdict(list)
        self.seen: list[Any] = []

    def on(self, lane: str, order: Callable[[], Any]) -> Any:
        if lane == "main":
            return order()
        if lane not in self.actors:
            self.actors[lane] = Actor(lane)
        return self.actors[lane].do(order)

    def run(self, program: list[Command]) -> None:
        try:
            for name, *arguments in program:
                getattr(self, name)(*arguments)
            self.snapshot()
        finally:
            for actor in self.actors.values():
                actor.end()
            self.fake.profiler.disable()

    def enter(self, lane: str, operation: str, wait: bool) -> None:
        span = self.fake.profile(operation, wait=wait)
        self.open[lane].append(span)
        self.on(lane, span.__enter__)

    def exit(self, lane: str, depth: int) -> None:
        if len(self.open[lane]) > depth:
            span = self.open[lane].pop(innermost_like(self.open[lane], depth))
            self.on(lane, lambda: span.__exit__(None, None, None))

    def tick(self, wall: int, cpu: int) -> None:
        self.fake.tick(wall, min(wall, cpu))

    def snapshot(self) -> None:
        self.fake.snapshot()
        self.seen.append(self.fake.raw())

    def iteration(self, closes: bool) -> None:
        self.seen.append(self.fake.profiler._ledger.iteration(closes))
        self.seen.append(self.fake.profiler.drain_iterations())

    def stop(self) -> None:
        self.fake.profiler.disable()

    def start(self) -> None:
        self.fake.profiler.enable()

    def reset(self) -> None:
        self.fake.profiler.reset()

    def drive(self, lane: str) -> None:
        self.on(lane, self.fake.profiler.drive)

    def end(self, lane: str) -> None:
        if lane in self.actors:
            self.actors.pop(lane).end()
            self.open[lane].clear()


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs)
def test_both_cores_keep_the_same_account_of_any_program(program):
    seen = []
    for core in CORES:
        machine = Machine(core)
        machine.run(program)
        seen.append(machine.seen)
    assert all(account == seen[0] for account in seen)


@dataclass
class Oracle:
    """The three rules, applied to every tick as it passes, in fractions: no clocks, no nodes, no bookkeeping."""

    stacks: defaultdict[str, list[tuple[str, bool]]] = field(default_factory=lambda: defaultdict(list))
    accounts: defaultdict[str, Fraction] = field(default_factory=lambda: defaultdict(Fraction))

    def tick(self, dt: int) -> None:
        driver = self.stacks["main"]
        if not driver:
            self.accounts["unattributed"] += dt
            return
        operation, waits = driver[-1]
        workers = [stack[-1][0] for lane, stack in self.stacks.items() if lane != "main" and stack and not stack[-1][1]]
        if not waits or not workers:
            self.accounts[operation] += dt
            return
        for worker in workers:
            self.accounts[worker] += Fraction(dt, len(workers))


@pytest.mark.parametrize("core", CORES)
@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(program=st.lists(commands, min_size=25, max_size=60))
def test_every_instant_is_where_the_rules_put_it(core, program):
    machine, oracle = Machine(core), Oracle()
    waits = 1
    for name, *arguments in program:
        if name == "enter":
            lane, operation, wait = arguments
            oracle.stacks[lane].append((operation, wait))
            waits += 1
        elif name == "exit":
            lane, depth = arguments
            if len(oracle.stacks[lane]) > depth:
                del oracle.stacks[lane][innermost_like(machine.open[lane], depth)]
            waits += 1
        elif name == "tick":
            oracle.tick(arguments[0])
        getattr(machine, name)(*arguments)
    try:
        measured = machine.fake.ledger()
    finally:
        machine.run([])
    for operation in {*measured, *oracle.accounts}:
        # A division's remainder, under one ns a worker, stays with the span that waited.
        slack = len(WORKERS) * waits
        assert abs(measured.get(operation, 0) - oracle.accounts[operation]) <= slack, operation


async_steps = st.lists(
    st.one_of(
        st.tuples(st.just("enter"), st.sampled_from(OPERATIONS), st.booleans()),
        st.just(("exit",)),
        st.tuples(st.just("tick"), st.integers(1, 1_000)),
        st.just(("yield",)),
    ),
    min_size=5,
    max_size=15,
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(async_steps, min_size=1, max_size=4), st.booleans())
def test_both_cores_keep_the_same_account_of_interleaving_tasks(tasks, outer):
    import asyncio

    async def task(fake: Fake, steps: list[Command]) -> None:
        spans: list[Any] = []
        for name, *arguments in steps:
            if name == "enter":
                spans.append(fake.profile(arguments[0], wait=arguments[1]))
                spans[-1].__enter__()
            elif name == "exit" and spans:
                spans.pop().__exit__(None, None, None)
            elif name == "tick":
                fake.tick(arguments[0])
            elif name == "yield":
                await asyncio.sleep(0)
                fake.tick(3)
        for span in reversed(spans):
            span.__exit__(None, None, None)

    async def main(fake: Fake) -> None:
        await asyncio.gather(*(asyncio.create_task(task(fake, t), name=f"t{i}") for i, t in enumerate(tasks)))

    seen = []
    for core in CORES:
        fake = Fake(core)
        if outer:
            with fake.profile("training"):
                asyncio.run(main(fake))
        else:
            asyncio.run(main(fake))
        fake.snapshot()
        seen.append(fake.raw())
        fake.profiler.disable()
    assert all(account == seen[0] for account in seen)

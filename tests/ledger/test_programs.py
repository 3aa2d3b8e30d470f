"""Random programs: the C core, its twin, and a third account that follows the rules instant by instant."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pytest
from fakes import CORES, Fake
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from programs import OPERATIONS, WORKERS, Command, Machine, commands, innermost_like, programs


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

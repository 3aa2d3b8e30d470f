"""Random programs of spans, ticks, iterations and switches, and a machine that runs them on real threads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from fakes import Actor, Fake
from hypothesis import strategies as st

OPERATIONS = ("env_step", "policy_forward", "update", "render")
WORKERS = ("worker-0", "worker-1", "worker-2")
LANES = ("main", *WORKERS)

Command = tuple[Any, ...]

commands = st.one_of(
    st.tuples(st.just("enter"), st.sampled_from(LANES), st.sampled_from(OPERATIONS), st.booleans()),
    st.tuples(st.just("enter"), st.sampled_from(LANES), st.sampled_from(OPERATIONS), st.just(False)),
    # Usually the innermost span ends, sometimes one further out.
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
    st.tuples(st.just("split"), st.sampled_from(LANES), st.sampled_from(OPERATIONS)),
    st.tuples(st.just("split"), st.just("main"), st.sampled_from(OPERATIONS)),
    st.tuples(st.just("stopped"), st.integers(0, 100), st.integers(1, 1_000)),
    st.tuples(st.just("end"), st.sampled_from(WORKERS)),
)
# In short programs, a worker hardly ever works while the driver waits.
programs = st.lists(st.one_of(*[commands] * 6, rare), min_size=25, max_size=60)


def innermost_like(spans: list[Any], depth: int) -> int:
    """The index of the span that ends. Of equal spans, it is the innermost."""
    return max(i for i, span in enumerate(spans) if span is spans[-1 - depth])


class Machine:
    """Runs a program on one core of the ledger. Each lane except the main one is a real thread."""

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

    def split(self, lane: str, operation: str) -> None:
        if not self.open[lane]:
            return
        span, rest = self.open[lane][-1], self.fake.profile(operation)
        gap = self.on(lane, lambda: self.fake.profiler.ledger.split(span, rest))
        self.seen.append(gap)
        if gap >= 0:
            self.open[lane].pop()

    def tick(self, wall: int, cpu: int) -> None:
        self.fake.tick(wall, min(wall, cpu))

    def snapshot(self) -> None:
        self.fake.snapshot()
        self.seen.append(self.fake.raw())

    def iteration(self, closes: bool) -> None:
        self.seen.append(self.fake.profiler.ledger.iteration(closes))
        self.seen.append(self.fake.profiler.drain_iterations())

    def stopped(self, before: int, wall: int) -> None:
        """The process is stopped. The start of the stop is not known exactly."""
        self.fake.tick(wall, 0)
        span = self.fake.profile("suspended")
        self.fake.profiler.ledger.stopped(span, self.fake.wall - wall - before, self.fake.wall)

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

"""The twin's ledger: the methods of the C core's Ledger type, in plain Python."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable
from typing import Any

from rlprof.ledger.histogram import pack
from rlprof.ledger.twin.base import locked
from rlprof.ledger.twin.collections import Collections
from rlprof.ledger.twin.journal import Timeline
from rlprof.ledger.twin.records import Lane
from rlprof.ledger.twin.span import Span
from rlprof.ledger.twin.stacks import Stacks
from rlprof.ledger.twin.startup import Startup

_MOST = 2**62


class Ledger(Startup):
    """Records spans and accounts for every instant."""

    # ---- on, off, reset ----

    @locked
    def start(self) -> None:
        if self.enabled:
            return
        now = self.now()
        self._attribution.resume(self._stopped, now)
        self._iterations.start += now - self._stopped
        self._started = now
        self._left_open = 0
        self.enabled = True
        if self._attribution.driver.ident == threading.get_ident():
            self._lanes.thread()  # follow its CPU time from the start and not from its first span

    @locked
    def stop(self) -> None:
        if not self.enabled:
            return
        now = self.now()
        self._attribution.settle(now)
        self._iterations.mark(self._attribution.nodes, now, closes=True)
        self._wall += now - self._started
        self._stopped = now
        self._left_open = self._open()
        self.enabled = False
        for thread in self._attribution.threads:
            thread.steps = 0  # the ends of the callbacks that run now are not seen
            thread.between_steps = False
        self._attribution.restate(self._attribution.driver, now)

    def _open(self) -> int:
        return sum(len(lane.stack) - 1 for lane in self._attribution.lanes)

    @locked
    def reset(self) -> None:
        now = self.time()
        if self.enabled:
            self._attribution.settle(now)
        for node in self._attribution.nodes:
            node.reset()
        for lane in self._attribution.lanes:
            lane.stood = None
            for entry in lane.stack:
                entry.start = now
        self._attribution.share_rest = self._attribution.idle_rest = 0
        self._attribution.given = 0
        self._wall = 0
        self._started = now
        self._devices.lost = self.trained = 0
        self._devices.pending.clear()
        self._timeline.clear()
        self._iterations.reset(now)
        self._stacks.reset()
        self._collections = Collections()

    def after_fork(self) -> None:
        self._lock = threading.RLock()  # another thread may have held it when the process was forked
        self._startup = self._startup_rest = None
        self.learned = False
        self._lanes.after_fork()
        self._left_open = 0
        self._memory.close()
        self._memory.peak = 0
        self._devices.attach(None)
        self._watch.set(None)
        self._stacks = Stacks()
        self.reset()

    @locked
    def set_driver(self) -> None:
        self.end_startup()  # it belonged to the former driver
        thread = self._lanes.thread()
        if thread is not None and thread is not self._attribution.driver:
            if self.enabled:
                self._attribution.settle(self.time())
            self._attribution.set_driver(thread, self.time())

    # ---- Python's garbage collector ----

    def collected(self, phase: str, info: dict[str, int]) -> None:
        if self.enabled:
            self._collections.note(phase, info, self.now())

    def collections(self) -> list[tuple[int, int, int, int, int]]:
        return self._collections.rows()

    # ---- iterations, steps and the timeline ----

    @locked
    def iteration(self, closes: bool) -> int:
        if self.enabled:
            self.end_startup()  # the training has begun
            now = self.trained = self.now()
            self._attribution.settle(now)
            self._iterations.mark(self._attribution.nodes, now, closes is True)
        return self._iterations.count

    @locked
    def drop_iteration(self) -> None:
        if self.enabled and self._iterations.open:
            now = self.now()
            self._attribution.settle(now)
            self._iterations.drop(self._attribution.nodes, now)

    @property
    def steps(self) -> int:
        return self._iterations.steps

    @locked
    def recount(self, steps: int, episodes: int) -> tuple[int, int]:
        """Change the counts. Counts of ended iterations are written and stay. Returns the change that was made."""
        gained = self._iterations.gained
        steps, episodes = max(steps, -gained[0]), max(episodes, -gained[1])
        self._iterations.steps += steps
        self._iterations.episodes += episodes
        return steps, episodes

    @locked
    def add_steps(self, number: int) -> None:
        counted = self._whole(number, "environment steps are counted in whole numbers")
        self._iterations.steps = min(self._iterations.steps + counted, _MOST)

    @locked
    def add_episodes(self, number: int) -> None:
        counted = self._whole(number, "episodes are counted in whole numbers")
        self._iterations.episodes = min(self._iterations.episodes + counted, _MOST)

    def _whole(self, number: Any, what: str) -> int:
        """A count must never stop a training: what is no number, or negative, only warns once."""
        try:
            whole = operator.index(number)
            if not 0 <= whole < 2**63:
                raise OverflowError("it does not fit 64 bits, or is negative")
        except Exception as error:
            self.hooks.warn(what, error)
            return 0
        if not self.enabled:
            return 0
        self.trained = self.now()
        return whole

    @locked
    def timeline(self, capacity: int) -> None:
        self._timeline = Timeline(capacity)

    @locked
    def drain_timeline(self) -> tuple[bytes, int]:
        return self._timeline.drain()

    @locked
    def drain_iterations(self) -> tuple[bytes, bytes]:
        drained = self._iterations.drain()
        if not self.enabled:
            self._iterations.write_rest(self._attribution.nodes, self._stopped)
        return drained

    # ---- the environment: devices, clocks, event loops, stops ----

    @locked
    def set_device(self, device: Any) -> None:
        self._devices.attach(device)

    def set_time(self, wall_ns: int, cpu_ns: int) -> None:
        if self._fake is not None:
            self._fake = wall_ns
        self._cpu.fake = cpu_ns

    def follow(self, run: Callable[[Any], None]) -> Callable[[Any], None]:
        """A method that replaces `run` and reports when an event loop begins and ends a callback."""

        def followed(handle: Any) -> None:
            previous = self._step(handle)
            try:
                run(handle)
            finally:
                self._step_end(previous)

        return followed

    @locked
    def _step(self, handle: Any) -> Lane | None:
        return self._lanes.step(handle) if self.enabled else None

    @locked
    def _step_end(self, previous: Lane | None) -> None:
        if self.enabled:
            self._lanes.step_end(previous)

    @property
    def step_cost(self) -> int:
        return self._lanes.step_cost

    @step_cost.setter
    def step_cost(self, ns: int) -> None:
        self._lanes.step_cost = ns

    def pulse(self, span: Span | None) -> None:
        """Python cannot notice that the process was stopped: its threads are late for other reasons, too."""

    @locked
    def stopped(self, span: Span, start: int, end: int) -> None:
        """Book a stop of the process: see core/pulse.c."""
        if not self.enabled:
            return
        attribution = self._attribution
        if attribution.waiting:
            start = max(start, attribution.waiting_mark)
        start = max(start, attribution.driver.lane.mark)
        gap = end - start
        if gap <= 0:
            return
        attribution.shift(start, end)
        node = self._lanes.child(attribution.driver.base.stack[0].node, span.operation)
        node.self += gap
        node.off_cpu += gap
        node.count_call(gap)
        self._iterations.leave_out(start, end)

    # ---- samples of the Python stack ----

    @locked
    def stacks(self, period_ns: int, main: int) -> None:  # noqa: ARG002 - the signature is the core's
        self._stacks.begin(period_ns > 0, self.now())

    @locked
    def stack_tick(self) -> bool:
        driver = self._attribution.driver
        if not self.enabled or not self._stacks.on or driver.ident == 0:
            return False
        return self._stacks.tick(driver, self.now(), self._started)

    @locked
    def drain_stacks(self) -> Any:
        return self._stacks.drain()

    @locked
    def own_time(self, own: bool) -> bool:
        """The calling thread begins or ends rlprof's own work: see core/own.c."""
        thread = self._known()
        if thread is None:
            return False
        before = thread.own
        if own is not before:
            self._lanes.follow(thread, entering=False)
            self._attribution.charge(thread, max(self.now(), thread.lane.mark))
            thread.own, thread.own_only = own, None
        return before

    # ---- processes that share a clock: the twin shares none ----

    def share(self, path: Any, create: bool) -> None:  # noqa: ARG002 - the signature is the core's
        """Python cannot use a clock that other processes advance."""
        raise OSError("the Python twin shares no clock with other processes")

    def members(self) -> list[int]:
        return []

    def ended(self) -> list[int]:
        return []

    def dismiss(self, pid: int) -> None:
        """There are no members."""

    def leave(self) -> None:
        """It shares nothing."""

    def request(self, seconds: float) -> bool:  # noqa: ARG002
        return True

    def listen(self, seconds: float) -> int:  # noqa: ARG002
        return -1

    def answer(self) -> None:
        """There are no requests."""

    def __reduce__(self) -> Any:
        return self.hooks.reduce()

    @locked
    def raw(self) -> dict[str, Any]:
        self._devices.resolve()
        wall, now = self._wall, self._stopped
        if self.enabled:
            now = self.now()
            self._attribution.settle(now)
            wall += now - self._started
        self._memory.fold(self._tracked())
        return {
            "wall": wall,
            "now": now,
            "trained": self.trained,
            "given": self._attribution.given,
            "driver_iteration": self._iterations.count,
            "epoch": 0,
            "begun": 0,
            "clock": "monotonic" if self._fake is None else "fake",
            "cpu": self._cpu.kind,
            "clock_drift": 0,
            "open": self._open(),
            "iterations": self._iterations.count,
            "iteration_sum": self._iterations.sum,
            "iteration_min": self._iterations.shortest,
            "iteration_max": self._iterations.longest,
            "iteration_histogram": pack(self._iterations.durations),
            "iterating": self._iterations.open,
            "learned": self.learned,
            "steps": self._iterations.steps,
            "episodes": self._iterations.episodes,
            "process_peak": self._memory.peak,
            "device_pending": len(self._devices.pending),
            "device_lost": self._devices.lost,
            "operations": [operation.row() for operation in self._operations.values()],
            "lanes": [lane.row() for lane in self._attribution.lanes if lane.pool is not None],
            "nodes": [node.row() for node in self._attribution.nodes],
        }

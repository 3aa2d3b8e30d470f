"""The twin's ledger: the surface of the C core's Ledger type, in plain Python.

It is one long class because every method takes the same lock and changes the same state; what stands by itself
(attribution, lanes, journals, memory) has files of its own.
"""

from __future__ import annotations

import operator
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from typing import Any, TypeVar

from rlprof.ledger.catalogue import SUSPENDED
from rlprof.ledger.compiled import compiling
from rlprof.ledger.histogram import bucket_of, pack
from rlprof.ledger.twin.attribution import Attribution
from rlprof.ledger.twin.cpu import CpuClock
from rlprof.ledger.twin.journal import Iterations, Timeline
from rlprof.ledger.twin.lanes import Lanes
from rlprof.ledger.twin.memory import DeviceSpans, ProcessMemory
from rlprof.ledger.twin.records import Entry, Lane, Node, Operation, Thread
from rlprof.ledger.twin.span import Span
from rlprof.ledger.twin.watch import Watch, Watcher

_MAX_OPERATIONS = 65536
_MOST = 2**62

Method = TypeVar("Method", bound=Callable[..., Any])


def _locked(method: Method) -> Method:
    """The C core has the GIL; Python code may be interrupted between any two lines."""

    @wraps(method)
    def locked(self: Ledger, *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            return method(self, *args, **kwargs)

    return locked  # type: ignore[return-value]  # wraps keeps the signature


class Ledger:
    """Records spans and accounts for every instant."""

    def __init__(self, hooks: Any, driver: int, clock: str = "auto", cpu: str = "auto") -> None:
        if clock == "tsc":
            raise ValueError("the TSC cannot be used here: the Python twin has no way to read it; use clock='auto'")
        if clock not in ("auto", "monotonic", "fake"):
            raise ValueError(f"clock is 'auto', 'monotonic', 'tsc' or 'fake', not {clock!r}")
        self.hooks = hooks
        self.driver = driver
        self.follows_tasks = False
        self.local = 0
        self.learned = False
        self.trained = 0
        self._fake: int | None = 0 if clock == "fake" else None
        self._cpu = CpuClock(cpu, fake=clock == "fake")
        self._lock = threading.RLock()
        self.enabled = False
        self._started = self._wall = self._stopped = 0
        self._left_open = 0
        self._startup: Span | None = None
        self._startup_rest: Span | None = None
        self._operations: dict[str, Operation] = {}
        self._attribution = Attribution(self._cpu)
        self._lanes = Lanes(hooks, self._attribution, self.time)
        self._timeline = Timeline()
        self._iterations = Iterations()
        self._memory = ProcessMemory()
        self._devices = DeviceSpans(hooks)
        self._watch = Watch(hooks)
        self._lanes.end_thread = self._end_thread
        self._lanes.make_driver(driver)

    def now(self) -> int:
        return time.perf_counter_ns() if self._fake is None else self._fake

    def time(self) -> int:
        """The clock while recording; while not, the moment recording stopped."""
        return self.now() if self.enabled else self._stopped

    # ---- spans ----

    def recorder(
        self,
        name: str,
        track_memory: bool = False,
        category: str | None = None,
        wait: bool = False,
        device: bool | None = None,
    ) -> Any:
        """Times a block ('with profile(name):') or a function ('@profile(name)')."""
        if compiling():
            return nullcontext()
        if not isinstance(name, str):
            raise TypeError(f"profile() takes the operation's name as a str, not {type(name).__name__}")
        if category is not None and not isinstance(category, str):
            raise TypeError(f"profile() takes a category as a str, not {type(category).__name__}")
        options = (bool(track_memory), bool(wait), None if device is None else bool(device))
        operation = self._operation(str(name), category)
        span = operation.spans.get(options)
        if span is None:
            span = operation.spans.setdefault(options, Span(self, operation, *options))
        return span

    def _operation(self, name: str, category: str | None) -> Operation:
        operation = self._operations.get(name)
        if operation is None:
            return self._new_operation(name, category)
        if category is not None and category != operation.category:
            if operation.category_told:
                self.hooks.warn("one operation is given two categories; the first one stays", None)
            else:
                operation.category, operation.on_device = self.hooks.classify(name, category)
                operation.category_told = True
        return operation

    @_locked
    def _new_operation(self, name: str, category: str | None) -> Operation:
        if len(self._operations) >= _MAX_OPERATIONS - 1:
            self.hooks.warn("more than 65,535 operation names; further ones are counted as '(other names)'", None)
            name, category = "(other names)", None
            if name in self._operations:
                return self._operations[name]
        found, on_device = self.hooks.classify(name, category)
        operation = Operation(len(self._operations), name, found, on_device, category is not None)
        return self._operations.setdefault(name, operation)

    def enter(self, span: Span) -> None:
        if self.enabled:
            with self._lock:
                self._enter(span)
            self._watch.tell()

    def _enter(self, span: Span) -> None:
        thread = self._lanes.thread() if self.enabled else None  # it may have been stopped before the lock was had
        if thread is None:
            return
        if self._startup is not None and thread is self._attribution.driver and not span.wait:
            self._startup_rest, self._startup = self._startup, None
            self._close_startup(self._startup_rest)
        lane = self._lanes.follow(thread, entering=True)
        now = self.now()
        self._attribution.charge(thread, now)
        entry = Entry(self._lanes.child(lane.top.node, span.operation), span, now)
        on_device = self._wants_device(span)
        if span.track_memory or on_device:
            own = self._begin_own(thread)
            if span.track_memory:
                self._memory.enter(entry, self._tracked())
            if on_device:
                self._devices.enter(entry, self._tracked())
            now = entry.start = self.now()
            self._attribution.charge(thread, now)
            thread.own = thread.own and not own
        if lane is thread.base:
            thread.between_steps = False  # outside of every callback: the loop has ended
        lane.stack.append(entry)
        self._attribution.restate(thread, now)
        self._watch.note(span, True)

    @staticmethod
    def _begin_own(thread: Thread) -> bool:
        """Follows a charge: what is read of memory and devices is rlprof's work. False where all of it is already."""
        begins = not thread.own
        if begins:
            thread.own, thread.own_only = True, thread.lane.top.node
        return begins

    def _wants_device(self, span: Span) -> bool:
        return self._devices.device is not None and (span.operation.on_device if span.device is None else span.device)

    def _tracked(self) -> list[Entry]:
        entries = (entry for lane in self._attribution.lanes for entry in lane.stack)
        return [entry for entry in entries if entry.tracks_memory]

    def exit(self, span: Span) -> None:
        if self.enabled or self._left_open:
            with self._lock:
                self._exit(span)
            self._watch.tell()

    def _exit(self, span: Span) -> None:
        if not self.enabled:
            self._exit_elsewhere(span, None, self._stopped)
            return
        now = self.now()
        thread = self._lanes.known()  # one that is not has entered nothing, so it has nothing to leave
        if thread is None:
            return
        lane = self._lanes.follow(thread, entering=False)
        now = max(now, lane.mark)
        if lane.top.span is not span:
            self._exit_elsewhere(span, lane, now)
            return
        self._attribution.charge(thread, now)
        entry = lane.top
        self._remove(lane, len(lane.stack) - 1, now)
        self._attribution.restate(thread, now)
        if span.track_memory or entry.device_event is not None:
            own = self._begin_own(thread)
            self._measure(entry)
            self._attribution.charge(thread, self.now())
            thread.own = thread.own and not own
        self._watch.note(span, False)

    def _measure(self, entry: Entry) -> None:
        """What memory and device say at the end of a span that is off its stack already."""
        tracked = [*self._tracked(), entry]
        if entry.tracks_memory:
            self._memory.exit(entry, tracked)
        if entry.device_event is not None:
            self._devices.exit(entry, tracked)

    def _remove(self, lane: Lane, position: int, now: int) -> None:
        self._close(lane, lane.stack[position], position, now)
        del lane.stack[position]

    def _close(self, lane: Lane, entry: Entry, depth: int, now: int) -> None:
        node = entry.node
        duration = now - entry.start
        lane.left = now
        node.calls += 1
        node.busy += duration
        node.min = min(node.min, duration)
        node.max = max(node.max, duration)
        node.durations[bucket_of(duration)] += 1
        self._timeline.add(entry, duration, depth)

    @_locked
    def begin_startup(self, span: Span) -> None:
        """Enter a span that ends where the driver's first one begins: see core/startup.c."""
        thread = self._lanes.thread() if self.enabled else None
        if thread is not None and thread is self._attribution.driver and self._startup is None:
            self._enter(span)
            self._startup = span

    @_locked
    def end_startup(self) -> None:
        self._end_startup()

    def training_begins(self, learns: bool) -> None:
        """The training begins, with a step or with learning."""
        self.learned = self.learned or learns
        self.end_startup()

    def _end_startup(self) -> None:
        startup, rest = self._startup, self._startup_rest
        self._startup = self._startup_rest = None
        if not self.enabled:
            if startup is not None:
                self._exit(startup)
        elif startup is not None:
            self._close_startup(startup)
        elif rest is not None:
            self._attribution.settle(self.now())
            self._claim_unattributed(rest)
            self._claim_accounts(rest)

    def _close_startup(self, startup: Span) -> None:
        """End the span, which waits may lie inside: they go on where they would be without it."""
        now = self.now()
        self._attribution.settle(now)
        lane = self._attribution.driver.base
        position = next((at for at, entry in enumerate(lane.stack) if entry.span is startup), 0)
        if position:
            self._remove(lane, position, now)
            self._attribution.restate(self._attribution.driver, now)
            self._watch.note(startup, False)
        self._claim_accounts(startup)
        for at in range(max(1, position), len(lane.stack)):
            entry = lane.stack[at]
            assert entry.span is not None
            entry.node = self._lanes.child(lane.stack[at - 1].node, entry.span.operation)

    def _claim_accounts(self, startup: Span) -> None:
        """Book all time up to now to start-up, whichever account has it."""
        node = self._lanes.child(self._attribution.driver.base.stack[0].node, startup.operation)
        for other in self._attribution.nodes:
            if other is not node and (other.operation is None or other.operation.name != SUSPENDED):
                _, own, shift, *_ = other.marked
                moved = other.ledger() - ((own if other.lane.on_driver else 0) + shift)
                other.shift -= moved
                node.shift += moved
        for lane in self._attribution.lanes:
            lane.left = lane.mark  # no later split may move what was booked before

    def _claim_unattributed(self, startup: Span) -> None:
        """A call of start-up: what had no span on the driver."""
        root = self._attribution.driver.base.stack[0].node
        node = self._lanes.child(root, startup.operation)
        _, own, shift, _, waited, off_cpu = root.marked
        time = root.self - own
        if time <= 0:
            return
        for field, kept in (("self", own), ("shift", shift), ("waited", waited), ("off_cpu", off_cpu), ("cost", 0)):
            setattr(node, field, getattr(node, field) + getattr(root, field) - kept)
            setattr(root, field, kept)
        node.calls += 1
        node.busy += time
        node.min = min(node.min, time)
        node.max = max(node.max, time)
        node.durations[bucket_of(time)] += 1

    def split(self, outer: Span, rest: Span) -> int:
        """End the innermost span where its last inner span ended. The rest is a call of another operation beside it."""
        with self._lock:
            gap = self._split(outer, rest)
        self._watch.tell()
        return gap

    def _split(self, outer: Span, rest: Span) -> int:
        thread = self._lanes.known() if self.enabled else None
        lane = self._lanes.follow(thread, entering=False) if thread is not None else None
        if thread is None or lane is None or lane.top.span is not outer or outer.wait or outer.track_memory:
            return -1
        entry, depth = lane.top, len(lane.stack) - 1
        now = max(self.now(), lane.mark)
        self._attribution.charge(thread, now)
        node = entry.node
        gap = now - max(lane.left, entry.start)
        if gap > 0:
            other = self._lanes.child(lane.stack[-2].node, rest.operation)
            gap = _move_rest(lane, node, other, gap)
        self._remove(lane, depth, now - gap)
        if gap > 0:
            self._close(lane, Entry(other, rest, now - gap), depth, now)
        self._attribution.restate(thread, now)
        self._watch.note(outer, False)
        return gap

    def share(self, path: Any, create: bool) -> None:  # noqa: ARG002 - the signature is the core's
        """Python cannot take part in a clock that other processes advance."""
        raise OSError("the Python twin shares no clock with other processes")

    def members(self) -> list[int]:
        return []

    def ended(self) -> list[int]:
        return []

    def dismiss(self, pid: int) -> None:
        """There are no members."""

    def leave(self) -> None:
        """It shares nothing."""

    def ask(self, seconds: float) -> bool:  # noqa: ARG002
        return True

    def listen(self, seconds: float) -> int:  # noqa: ARG002
        return -1

    def answer(self) -> None:
        """There are no requests."""

    def watch(self, watcher: Watcher | None) -> None:
        """Report every span to the watcher: its operation, and whether it begins."""
        self._watch.set(watcher)

    def open_operations(self) -> list[str]:
        """Open spans of the calling thread's lane, outermost first."""
        thread = self._lanes.known() if self.enabled else None
        stack = [] if thread is None else thread.lane.stack
        return [entry.span.operation.name for entry in stack if entry.span is not None]

    def depth(self) -> int:
        """How many spans are open on the calling thread's lane."""
        thread = self._lanes.known() if self.enabled else None
        return 0 if thread is None else len(thread.lane.stack) - 1

    def is_inside(self, family: tuple[Span, ...], wait: bool) -> bool:
        """Whether the innermost span is one of these, or, for one that waits, any span waits."""
        thread = self._lanes.known() if self.enabled else None
        if thread is None:
            return False
        innermost = thread.lane.top.node.operation
        waits = wait and any(entry.waits for entry in thread.lane.stack)
        return waits or any(span.operation is innermost for span in family)

    def _exit_elsewhere(self, span: Span, lane: Lane | None, now: int) -> None:
        """The span is not the innermost one: see core/span.c."""
        for candidate in [lane, *self._attribution.lanes]:
            if candidate is None or candidate.host is None:
                continue
            for position in range(len(candidate.stack) - 1, 0, -1):
                if candidate.stack[position].span is span:
                    self._end_inside(candidate, position, now)
                    return

    def _end_inside(self, lane: Lane, position: int, now: int) -> None:
        entry = lane.stack[position]
        if self.enabled:
            self._attribution.settle(now)
        else:
            self._left_open -= 1
        self._remove(lane, position, now)
        self._attribution.forget_suspended(lane, now)
        assert lane.host is not None
        self._attribution.restate(lane.host, now)
        if lane.host.lane is not lane:
            self._lanes.release(lane)
        if self.enabled:
            self._measure(entry)
        if entry.span is not None:
            self._watch.note(entry.span, False)

    @_locked
    def _end_thread(self, thread: Thread) -> None:
        """The thread is over. Spans it left open end here; its lanes are free for others."""
        attribution = self._attribution
        now = self.time()
        if self.enabled:
            attribution.settle(now)
        for lane in attribution.lanes:
            if lane.host is thread:
                while lane.open:
                    self._remove(lane, len(lane.stack) - 1, now)
                attribution.suspended -= lane.suspended
                lane.suspended = False
                if lane is not thread.base:
                    self._lanes.release(lane)
        thread.lane = thread.base
        thread.shared.clear()
        thread.between_steps = False
        thread.steps = 0
        attribution.restate(thread, now)
        self._cpu.close(thread)
        thread.ident = 0
        if thread is not attribution.driver:  # the driver's time goes on, unattributed, even without its thread
            self._lanes.end(thread.base)
            attribution.threads.remove(thread)

    # ---- on, off, reset ----

    @_locked
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
            self._lanes.thread()  # so that its CPU time is followed from the start, not from its first span

    @_locked
    def stop(self) -> None:
        if not self.enabled:
            return
        now = self.now()
        self._attribution.settle(now)
        self._iterations.mark(self._attribution.nodes, now, closes=True)  # the one under way ends here
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

    @_locked
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
        self._attribution.share_rest = self._attribution.idle_rest = 0  # time of before
        self._attribution.given = 0
        self._wall = 0
        self._started = now
        self._devices.lost = self.trained = 0
        self._devices.pending.clear()
        self._timeline.clear()
        self._iterations.reset(now)

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
        self.reset()

    # ---- the rest of the surface ----

    @_locked
    def set_driver(self) -> None:
        self._end_startup()  # it was the former driver's
        thread = self._lanes.thread()
        if thread is not None and thread is not self._attribution.driver:
            if self.enabled:
                self._attribution.settle(self.time())
            self._attribution.set_driver(thread, self.time())

    @_locked
    def iteration(self, closes: bool) -> int:
        if self.enabled:
            self._end_startup()  # the training has begun
            now = self.trained = self.now()
            self._attribution.settle(now)
            self._iterations.mark(self._attribution.nodes, now, closes is True)
        return self._iterations.count

    @_locked
    def drop_iteration(self) -> None:
        if self.enabled and self._iterations.open:
            now = self.now()
            self._attribution.settle(now)
            self._iterations.drop(self._attribution.nodes, now)

    @_locked
    def rename(self, was: Span, name: Span) -> bool:
        """What the driver has recorded as `was`, with all inside, was `name`. False: it is open, or there is none."""
        lane = self._attribution.driver.base
        root = lane.stack[0].node
        found = root.children.get(was.operation.id)
        if found is None or any(entry.node.operation is was.operation for entry in lane.stack):
            return False
        if self.enabled:
            self._attribution.settle(self.now())
        moved: dict[Node | None, Node] = {}
        for node in tuple(self._attribution.nodes):  # a node comes after its parent
            above = root if node is found else moved.get(node.parent)
            if above is not None and node.operation is not None:
                moved[node] = self._lanes.child(above, name.operation if node is found else node.operation)
                node.move_to(moved[node])
        return True

    @property
    def steps(self) -> int:
        return self._iterations.steps

    @_locked
    def recount(self, steps: int, episodes: int) -> tuple[int, int]:
        """Add to what is counted, or take back; but what an iteration has is written, and stays. Returns what was."""
        gained = self._iterations.gained
        steps, episodes = max(steps, -gained[0]), max(episodes, -gained[1])
        self._iterations.steps += steps
        self._iterations.episodes += episodes
        return steps, episodes

    @_locked
    def add_steps(self, number: int) -> None:
        counted = self._whole(number, "environment steps are counted in whole numbers")
        self._iterations.steps = min(self._iterations.steps + counted, _MOST)

    @_locked
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

    @_locked
    def timeline(self, capacity: int) -> None:
        self._timeline = Timeline(capacity)

    @_locked
    def drain_timeline(self) -> tuple[bytes, int]:
        return self._timeline.drain()

    @_locked
    def drain_iterations(self) -> tuple[bytes, bytes]:
        drained = self._iterations.drain()
        if not self.enabled:
            self._iterations.write_rest(self._attribution.nodes, self._stopped)
        return drained

    @_locked
    def set_device(self, device: Any) -> None:
        self._devices.attach(device)

    def set_time(self, wall_ns: int, cpu_ns: int) -> None:
        if self._fake is not None:
            self._fake = wall_ns
        self._cpu.fake = cpu_ns

    def follow(self, run: Callable[[Any], None]) -> Callable[[Any], None]:
        """A method to be put in run's place: it tells when an event loop begins and ends a callback."""

        def followed(handle: Any) -> None:
            previous = self._step(handle)
            try:
                run(handle)
            finally:
                self._step_end(previous)

        return followed

    @_locked
    def _step(self, handle: Any) -> Lane | None:
        return self._lanes.step(handle) if self.enabled else None

    @_locked
    def _step_end(self, previous: Lane | None) -> None:
        if self.enabled:
            self._lanes.step_end(previous)

    def set_step_cost(self, ns: int) -> None:
        self._lanes.step_cost = ns

    def set_span_cost(self, ns: int) -> None:
        """The C core needs this to time a probe's work around a span. The twin only calibrates it."""

    def pulse(self, span: Span | None) -> None:
        """Notice when the process is stopped. Python cannot: its threads are late for other reasons, too."""

    @_locked
    def stopped(self, span: Span, start: int, end: int) -> None:
        """The process was stopped from start to end, which is not booked yet: see core/pulse.c."""
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
        node.calls += 1
        node.busy += gap
        node.min = min(node.min, gap)
        node.max = max(node.max, gap)
        node.durations[bucket_of(gap)] += 1
        self._iterations.leave_out(start, end)

    @_locked
    def own_time(self, own: bool) -> bool:
        """From here on the calling thread's time is rlprof's own, or is so no more: see core/own.c."""
        thread = self._lanes.known() if self.enabled else None
        if thread is None:
            return False
        before = thread.own
        if own is not before:
            self._lanes.follow(thread, entering=False)
            self._attribution.charge(thread, max(self.now(), thread.lane.mark))
            thread.own, thread.own_only = own, None
        return before

    def __reduce__(self) -> Any:
        return self.hooks.reduce()

    @_locked
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


def _move_rest(lane: Lane, node: Node, other: Node, gap: int) -> int:
    """Move what a node has got in the last `gap` ns to another one; returns how much time that is: see core/span.c."""
    stood = lane.stood
    assert stood is not None  # a charge has just been made
    _, own, shift, overlapped, waited, off_cpu = node.marked
    kept = {name: getattr(stood, name) for name in ("shift", "covered", "waited", "off_cpu", "cost")}
    if gap > node.self - own:
        gap = node.self - own
        kept.update(shift=shift, waited=waited, off_cpu=off_cpu)
        if not lane.on_driver:
            kept["covered"] = node.covered - (gap - (node.waited - waited) - (node.overlapped() - overlapped))
    for name, value in {**kept, "self": node.self - gap}.items():
        moved = getattr(node, name) - value
        setattr(node, name, value)
        setattr(other, name, getattr(other, name) + moved)  # it may be the same
    return gap

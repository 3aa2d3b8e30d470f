"""Threads and lanes of the twin: who runs where, born and ended. Mirrors core/lane.c and core/tree.c."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from rlprof.ledger.twin.attribution import Attribution
from rlprof.ledger.twin.records import Entry, Lane, Node, Operation, Thread

_MAX_NODES = 262144
_MAX_ENDED_LANES = 64


class _Guard:
    """Lives in a thread-local, which dies with its thread: the one place that tells of its end."""

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end
        self._process = os.getpid()

    def __del__(self) -> None:
        if os.getpid() == self._process:  # in a forked child the lock may be held by a thread that is not there
            self._end()


class Lanes:
    """Finds the lane a span belongs to."""

    def __init__(self, hooks: Any, attribution: Attribution, time: Callable[[], int]) -> None:
        self._hooks = hooks
        self._attribution = attribution
        self._time = time
        self._local = threading.local()
        self._tasks: dict[int, Lane] = {}
        self._asyncio: Any = None
        self.step_cost = 0

    # ---- nodes ----

    def _new_node(self, lane: Lane, parent: Node | None, operation: Operation | None) -> Node:
        node = Node(len(self._attribution.nodes), lane, parent, operation)
        self._attribution.nodes.append(node)
        return node

    def child(self, parent: Node, operation: Operation) -> Node:
        full = len(self._attribution.nodes) >= _MAX_NODES and parent.parent is not None
        if full and operation.id not in parent.children:
            self._hooks.warn("more than 262,144 places in the call trees; further ones are booked at the root", None)
            parent = parent.lane.stack[0].node
        node = parent.children.get(operation.id)
        if node is None:
            node = parent.children[operation.id] = self._new_node(parent.lane, parent, operation)
        return node

    # ---- lanes ----

    def _reuse(self, kind: str, name: str, group: str, on_driver: bool) -> Lane | None:
        ended = [
            lane
            for lane in self._attribution.lanes
            if lane.host is None and lane.kind == kind and lane.on_driver == on_driver and lane.group == group
        ]
        for lane in ended:
            if lane.name == name:
                return lane
        if len(ended) < _MAX_ENDED_LANES:
            return None
        ended[0].name = group
        return ended[0]

    def _take(self, kind: str, name: str, group: str, on_driver: bool, now: int) -> Lane:
        lane = self._reuse(kind, name, group, on_driver)
        if lane is None:
            lane = Lane(len(self._attribution.lanes), kind, name, group, on_driver)
            lane.stack.append(Entry(self._new_node(lane, None, None), None, 0))
            self._attribution.lanes.append(lane)
        lane.mark = now
        lane.uses += 1
        return lane

    @staticmethod
    def release(lane: Lane) -> None:
        """Give a task's lane back once it has no span open."""
        if lane.kind == "task" and not lane.open:
            lane.host = None

    # ---- threads ----

    def _new_thread(self, ident: int, name: str, group: str, on_driver: bool = False) -> Thread:
        lane = self._take("thread", name, group, on_driver, self._time())
        thread = Thread(ident, lane, lane)
        lane.host = thread
        thread.share_mark = self._attribution.share_clock
        thread.cover_mark = self._attribution.wait_clock
        self._attribution.threads.insert(0, thread)
        return thread

    def make_driver(self, ident: int) -> None:
        self._attribution.driver = self._new_thread(ident, "main", "main", on_driver=True)

    def known(self) -> Thread | None:
        """The calling thread's record, if it has recorded anything yet."""
        return getattr(self._local, "thread", None)

    def thread(self) -> Thread | None:
        """The calling thread's record; None where it cannot be had, already warned."""
        known = self.known()
        if known is not None:
            return known
        try:
            return self._new_here()
        except Exception as error:  # whatever fails, the training goes on
            self._hooks.warn("a thread could not be registered; its spans are not recorded", error)
            return None

    def _new_here(self) -> Thread:
        ident = threading.get_ident()
        thread = self._find(ident)
        if thread is None:
            name, group = self._hooks.name_thread(ident)
            thread = self._find(ident) or self._new_thread(ident, name, group)
        now = self._time()
        self._attribution.cpu.open(thread, now)
        self._attribution.restate(thread, now)
        self._local.thread = thread
        self._local.guard = _Guard(lambda: self._end(thread))
        return thread

    def _find(self, ident: int) -> Thread | None:
        return next((thread for thread in self._attribution.threads if thread.ident == ident), None)

    def _end(self, thread: Thread) -> None:
        if thread not in self._attribution.threads:
            return  # forked away
        self.end_thread(thread)

    end_thread: Callable[[Thread], None]
    """Set by the ledger, which knows how to end the spans a thread leaves open."""

    # ---- asyncio ----

    def _running_task(self) -> Any:
        if self._asyncio is None and "asyncio.tasks" not in sys.modules:
            return None
        try:
            if self._asyncio is None:
                self._asyncio = self._hooks.find_asyncio()
            if self._asyncio is None:
                return None
            running_loop, current_tasks = self._asyncio
            loop = running_loop()
            return None if loop is None else current_tasks.get(loop)
        except Exception as error:  # whatever another event loop does, the span is recorded
            self._hooks.warn("the running asyncio task cannot be told; its spans are booked to its thread", error)
            return None

    def follow(self, thread: Thread, entering: bool) -> Lane:
        """The lane to run on: the running task's, or the thread's own."""
        task = self._running_task()
        lane = thread.base if task is None else self._task_lane(thread, task, entering)
        if lane is not thread.lane:
            self._run(thread, lane, self._time())
        return thread.lane

    def _task_lane(self, thread: Thread, task: Any, entering: bool) -> Lane:
        lane = self._tasks.get(id(task))
        if lane is not None and lane.host is not None:
            return lane if lane.host is thread else thread.base
        if not entering:
            return thread.base
        try:
            self._hooks.saw_task()
            return self._take_for_task(thread, task)
        except Exception as error:
            self._hooks.warn("an asyncio task could not be given a lane; its spans are booked to its thread", error)
            return thread.base

    def _take_for_task(self, thread: Thread, task: Any) -> Lane:
        """One that had a lane before gets the same again, if nobody took it meanwhile."""
        now = self._time()
        name = task.get_name()
        on_driver = thread is self._attribution.driver
        lane = self._tasks.get(id(task))
        if lane is not None and lane.name == name and lane.on_driver == on_driver:
            lane.mark = now
        else:
            lane = self._take("task", name, self._hooks.group_of(name), on_driver, now)
            if lane.task is not None:
                self._tasks.pop(lane.task, None)
            lane.task = id(task)
            self._tasks[id(task)] = lane
        lane.host = thread
        return lane

    def _run(self, thread: Thread, lane: Lane, now: int) -> None:
        previous = thread.lane
        self._attribution.switch_lane(thread, lane, now)
        if previous is not lane:
            self.release(previous)

    def step(self, handle: Any) -> int:
        thread = self.thread()
        if thread is None:
            return -1
        task = getattr(getattr(handle, "_callback", None), "__self__", None)
        lane = self._tasks.get(id(task))
        previous = thread.lane.id if thread.steps else -1
        thread.steps += 1
        now = self._time()
        self._attribution.charge(thread, now)
        thread.between_steps = False
        self._run(thread, lane if lane is not None and lane.host is thread else thread.base, now)
        return previous

    def step_end(self, previous: int) -> None:
        thread = self.thread()
        if thread is None:
            return
        thread.steps -= thread.steps > 0
        lanes = self._attribution.lanes
        nested = 0 <= previous < len(lanes) and lanes[previous].host is thread
        lane = lanes[previous] if nested else thread.base
        now = self._time()
        self._attribution.charge(thread, now)
        thread.between_steps = thread.steps == 0
        self._run(thread, lane, now)
        thread.base.top.node.cost += self.step_cost

    def after_fork(self) -> None:
        """The child has one thread and a life of its own: what was recorded, and what was open, is the parent's."""
        attribution = self._attribution
        self._local = threading.local()
        self._tasks.clear()
        attribution.threads.clear()
        attribution.lanes.clear()
        attribution.nodes.clear()
        attribution.workers = attribution.suspended = 0
        attribution.waiting = False
        self.make_driver(threading.get_ident())

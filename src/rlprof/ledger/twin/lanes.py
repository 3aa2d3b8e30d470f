"""Threads and lanes of the twin: where each runs, how it begins and ends. Mirrors core/lane.c and core/tree.c."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from itertools import islice
from typing import Any

from rlprof.ledger.twin.attribution import Attribution
from rlprof.ledger.twin.records import Entry, Lane, Node, Operation, Pool, Thread

_MAX_NODES = 262144
_MAX_TREES = 64
_MAX_TASK_LANES = 1024
_LONGEST_OWN = 100_000


class _Guard:
    """An object in a thread-local. It is destroyed with its thread, which reports the thread's end."""

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
        self._pools: dict[tuple[str, bool, str], Pool] = {}
        self._spare: list[Lane] = []
        self._trees = 0
        attribution.move = self._move
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

    def _reuse(self, pool: Pool, kind: str, name: str) -> Lane | None:
        if pool.group != "Task-#":  # asyncio's own names never come again
            for lane in islice(reversed(pool.ended), _MAX_TREES):
                if lane.name == name:
                    return lane
        many = len(pool.ended) >= _MAX_TREES or (kind == "task" and pool.trees >= _MAX_TREES)
        if not many or not pool.ended:
            return None
        first = next(iter(pool.ended))
        first.name = pool.group
        return first

    def _new_lane(self, kind: str, name: str, group: str, on_driver: bool) -> Lane:
        pool = self._pools.setdefault((kind, on_driver, group), Pool(group))
        pool.trees += 1
        lane = Lane(self._trees, kind, name, on_driver, pool)
        self._trees += 1
        lane.stack.append(Entry(self._new_node(lane, None, None), None, 0))
        self._attribution.lanes.append(lane)
        return lane

    def _join(self, host: Thread, group: str, on_driver: bool) -> Lane:
        """A lane in the tree that the thread's further tasks of this group share."""
        shared = host.shared.get(group)
        if shared is None:
            shared = host.shared[group] = self._new_lane("task", group, group, on_driver)
            shared.shared = True
            shared.host = host
        if self._spare:
            guest = self._spare.pop()
        else:
            guest = Lane(shared.id, "task", group, on_driver, None)
            guest.stack.append(Entry(shared.stack[0].node, None, 0))
            self._attribution.lanes.append(guest)
        guest.id = shared.id
        guest.stack[0].node = shared.stack[0].node
        shared.uses += 1
        return guest

    def _take(self, host: Thread | None, kind: str, name: str, group: str, on_driver: bool, now: int) -> Lane:
        pool = self._pools.get((kind, on_driver, group))
        lane = None if pool is None else self._reuse(pool, kind, name)
        if lane is not None and pool is not None:
            del pool.ended[lane]
        elif host is not None and pool is not None and pool.trees >= _MAX_TREES:
            lane = self._join(host, group, on_driver)
        elif host is not None and self._trees >= _MAX_TASK_LANES:
            lane = self._join(host, "other tasks", on_driver)
        else:
            lane = self._new_lane(kind, name, group, on_driver)
        lane.on_driver = on_driver
        lane.mark = now
        lane.uses += 1
        return lane

    def end(self, lane: Lane) -> None:
        """Free the lane for the next thread or task."""
        lane.host = None
        lane.shared = False
        if lane.pool is not None:
            lane.pool.ended[lane] = None
            return
        if lane.task is not None:
            self._tasks.pop(lane.task, None)
            lane.task = None
        self._spare.append(lane)

    def release(self, lane: Lane) -> None:
        """Give a task's lane back once it has no span open."""
        if lane.kind == "task" and not lane.open and lane.host is not None:
            self.end(lane)

    def _move(self, lane: Lane, on_driver: bool) -> None:
        lane.on_driver = on_driver
        if lane.pool is None:
            return
        lane.pool.trees -= 1
        lane.pool.ended.pop(lane, None)
        lane.pool = self._pools.setdefault((lane.kind, on_driver, lane.pool.group), Pool(lane.pool.group))
        lane.pool.trees += 1
        if lane.host is None:
            lane.pool.ended[lane] = None

    # ---- threads ----

    def _new_thread(self, ident: int, name: str, group: str, on_driver: bool = False) -> Thread:
        lane = self._take(None, "thread", name, group, on_driver, self._time())
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
            running_loop, current_task = self._asyncio
            loop = running_loop()
            return None if loop is None else current_task(loop)
        except Exception as error:  # whatever another event loop does, the span is recorded
            self._hooks.warn("the running asyncio task cannot be found; its spans are booked to its thread", error)
            return None

    def follow(self, thread: Thread, entering: bool) -> Lane:
        """The lane to run on: the running task's, or the thread's own."""
        task = self._running_task()
        if task is None and thread.lane is thread.base:
            return thread.lane  # finding no task is part of a span's calibrated cost
        began = self._time()
        lane = thread.base if task is None else self._task_lane(thread, task, entering)
        stack = thread.lane.stack
        self._book_own(stack[-1 if entering or len(stack) == 1 else -2].node, began)
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
        """A task that had a lane gets the same again, unless another task has taken it."""
        now = self._time()
        name = task.get_name()
        on_driver = thread is self._attribution.driver
        lane = self._tasks.get(id(task))
        if lane is not None and lane.pool is not None and lane.name == name and lane.on_driver == on_driver:
            del lane.pool.ended[lane]
            lane.mark = now
        else:
            lane = self._take(thread, "task", name, self._hooks.group_of(name), on_driver, now)
            if lane.task is not None:
                self._tasks.pop(lane.task, None)
            former = self._tasks.get(id(task))
            if former is not None:
                former.task = None  # of an ended task at this address, or of this task under another name
            lane.task = id(task)
            self._tasks[id(task)] = lane
        lane.host = thread
        return lane

    def _run(self, thread: Thread, lane: Lane, now: int) -> None:
        previous = thread.lane
        self._attribution.switch_lane(thread, lane, now)
        if previous is not lane:
            self.release(previous)

    def _book_own(self, node: Node, began: int) -> None:
        node.cost += min(self._time() - began, _LONGEST_OWN)

    def step(self, handle: Any) -> Lane | None:
        thread = self.thread()
        if thread is None:
            return None
        now = self._time()
        task = getattr(getattr(handle, "_callback", None), "__self__", None)
        lane = self._tasks.get(id(task))
        previous = thread.lane if thread.steps and thread.lane.open else None
        thread.steps += 1
        self._attribution.charge(thread, now)
        thread.between_steps = False
        self._run(thread, lane if lane is not None and lane.host is thread else thread.base, now)
        self._book_own(thread.lane.top.node, now)
        return previous

    def step_end(self, previous: Lane | None) -> None:
        thread = self.thread()
        if thread is None:
            return
        now = self._time()
        thread.steps -= thread.steps > 0
        self._attribution.charge(thread, now)
        thread.between_steps = thread.steps == 0
        self._run(thread, previous if previous is not None and previous.host is thread else thread.base, now)
        node = thread.base.top.node
        node.cost += self.step_cost
        self._book_own(node, now)

    def after_fork(self) -> None:
        """The child has one thread and records anew. Records and open spans belong to the parent."""
        attribution = self._attribution
        self._local = threading.local()
        self._tasks.clear()
        self._pools.clear()
        self._spare.clear()
        self._trees = 0
        attribution.threads.clear()
        attribution.lanes.clear()
        attribution.nodes.clear()
        attribution.workers = attribution.suspended = 0
        attribution.waiting = False
        self.make_driver(threading.get_ident())

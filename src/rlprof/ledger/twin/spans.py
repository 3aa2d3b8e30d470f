"""The twin's spans as they begin and end: core/span.c, core/split.c and core/rename.c."""

from __future__ import annotations

from typing import Any

from rlprof.ledger.twin.base import Base, locked
from rlprof.ledger.twin.records import Entry, Lane, Node, Thread
from rlprof.ledger.twin.span import Span
from rlprof.ledger.twin.watch import Watcher


class Spans(Base):
    """Enters and leaves spans."""

    def __init__(self, hooks: Any, driver: int, clock: str = "auto", cpu: str = "auto") -> None:
        super().__init__(hooks, driver, clock, cpu)
        self._lanes.end_thread = self._end_thread

    def enter(self, span: Span) -> None:
        if self.enabled:
            with self._lock:
                self._enter(span)
            self._watch.report()

    def _enter(self, span: Span) -> None:
        thread = self._lanes.thread() if self.enabled else None  # recording may have stopped before the lock was taken
        if thread is None:
            return
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
            thread.between_steps = False  # not inside a callback: the loop has ended
        lane.stack.append(entry)
        self._attribution.restate(thread, now)
        self._watch.note(span, True)

    @staticmethod
    def _begin_own(thread: Thread) -> bool:
        """After a charge: reading memory and devices is rlprof's work. False if the thread does such work already."""
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
            self._watch.report()

    def _exit(self, span: Span) -> None:
        if not self.enabled:
            self._exit_elsewhere(span, None, self._stopped)
            return
        now = self.now()
        thread = self._lanes.known()  # an unknown thread has entered nothing
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
        """Read memory and device at the end of a span that is off its stack."""
        tracked = [*self._tracked(), entry]
        if entry.tracks_memory:
            self._memory.exit(entry, tracked)
        if entry.device_event is not None:
            self._devices.exit(entry, tracked)

    def _remove(self, lane: Lane, position: int, now: int) -> None:
        self._close(lane, lane.stack[position], position, now)
        del lane.stack[position]

    def _close(self, lane: Lane, entry: Entry, depth: int, now: int) -> None:
        lane.left = now
        entry.node.count_call(now - entry.start)
        self._timeline.add(entry, now - entry.start, depth)

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

    @locked
    def _end_thread(self, thread: Thread) -> None:
        """The thread has ended. Spans that it left open end here, and its lanes are free for others."""
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
        thread.bound = False
        thread.ident = 0
        if thread is not attribution.driver:  # the driver's time goes on without its thread, unattributed
            self._lanes.end(thread.base)
            attribution.threads.remove(thread)

    def split(self, outer: Span, rest: Span) -> int:
        """End the innermost span where its last inner span ended. The time since is a call of `rest` beside it."""
        with self._lock:
            gap = self._split(outer, rest)
        self._watch.report()
        return gap

    def _split(self, outer: Span, rest: Span) -> int:
        thread = self._known()
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
            self._stacks.move(node, other, now - gap)
        self._remove(lane, depth, now - gap)
        if gap > 0:
            self._close(lane, Entry(other, rest, now - gap), depth, now)
        self._attribution.restate(thread, now)
        self._watch.note(outer, False)
        return gap

    @locked
    def rename(self, was: Span, name: Span) -> bool:
        """Book the driver's spans of `was`, with all inside them, to `name`. False: one is open, or there is none."""
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
                self._stacks.move(node, moved[node])
        return True

    def watch(self, watcher: Watcher | None) -> None:
        """Report every span to the watcher: its operation, and whether it begins."""
        self._watch.set(watcher)

    def open_operations(self) -> list[str]:
        """Open spans of the calling thread's lane, outermost first."""
        thread = self._known()
        stack = [] if thread is None else thread.lane.stack
        return [entry.span.operation.name for entry in stack if entry.span is not None]

    def depth(self) -> int:
        """How many spans are open on the calling thread's lane."""
        thread = self._known()
        return 0 if thread is None else len(thread.lane.stack) - 1

    def is_inside(self, family: tuple[Span, ...], wait: bool) -> bool:
        """True if the innermost span is one of these; with `wait`, also if any open span waits."""
        thread = self._known()
        if thread is None:
            return False
        innermost = thread.lane.top.node.operation
        waits = wait and any(entry.waits for entry in thread.lane.stack)
        return waits or any(span.operation is innermost for span in family)


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

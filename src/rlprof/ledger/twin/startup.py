"""The twin's start-up: core/startup.c has the rules."""

from __future__ import annotations

from rlprof.ledger.catalogue import SUSPENDED
from rlprof.ledger.twin.base import locked
from rlprof.ledger.twin.span import Span
from rlprof.ledger.twin.spans import Spans


class Startup(Spans):
    """Books the time before the training to one span."""

    _startup: Span | None = None
    _startup_rest: Span | None = None

    def _enter(self, span: Span) -> None:
        startup = None if span.wait or not self.enabled else self._startup
        if startup is not None and self._lanes.thread() is self._attribution.driver:
            self._startup, self._startup_rest = None, startup
            self._close_startup(startup)
        super()._enter(span)

    @locked
    def begin_startup(self, span: Span) -> None:
        """On the driver: open a span that ends with the driver's first span, or when the training begins."""
        thread = self._lanes.thread() if self.enabled else None
        if thread is not None and thread is self._attribution.driver and self._startup is None:
            self._enter(span)
            self._startup = span

    def training_begins(self, learns: bool) -> None:
        """The training begins, with a step or with learning."""
        self.learned = self.learned or learns
        self.end_startup()

    @locked
    def end_startup(self) -> None:
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
        """End the span. Waits inside it move up one level."""
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
        """Book all time up to now to start-up, from every account."""
        self._collections.begin()
        node = self._lanes.child(self._attribution.driver.base.stack[0].node, startup.operation)
        for other in self._attribution.nodes:
            if other is not node and (other.operation is None or other.operation.name != SUSPENDED):
                moved = other.ledger() - other.marked_ledger()
                other.shift -= moved
                node.shift += moved
        if self._iterations.count == 0:
            self._stacks.move(None, node)
        for lane in self._attribution.lanes:
            lane.left, lane.stood = lane.mark, None  # no later split may move time from before

    def _claim_unattributed(self, startup: Span) -> None:
        """Make a call of start-up of the driver's time without a span."""
        root = self._attribution.driver.base.stack[0].node
        node = self._lanes.child(root, startup.operation)
        _, own, shift, _, waited, off_cpu = root.marked
        time = root.self - own
        if time <= 0:
            return
        for field, kept in (("self", own), ("shift", shift), ("waited", waited), ("off_cpu", off_cpu), ("cost", 0)):
            setattr(node, field, getattr(node, field) + getattr(root, field) - kept)
            setattr(root, field, kept)
        node.count_call(time)

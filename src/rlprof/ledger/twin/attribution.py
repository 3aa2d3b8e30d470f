"""Which operation each instant of the driver is booked to. core/attribution.c has the rules, and why this is exact."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rlprof.ledger.twin.cpu import CpuClock
from rlprof.ledger.twin.records import Lane, Node, Thread


class Attribution:
    """The three clocks that share out the driver's waiting, and which threads work and wait now."""

    def __init__(self, cpu: CpuClock) -> None:
        self.cpu = cpu
        self.threads: list[Thread] = []
        self.lanes: list[Lane] = []
        self.nodes: list[Node] = []
        self.driver: Thread
        self.waiting = False
        self.waiting_mark = 0
        self.share_clock = self.share_rest = 0
        self.given = 0
        self.idle_clock = self.idle_rest = 0
        self.wait_clock = 0
        self.workers = self.suspended = 0

    def _loop_idles(self) -> bool:
        return self.driver.between_steps and self.suspended > 0

    def _advance(self, now: int) -> None:
        elapsed = now - self.waiting_mark
        if not self.waiting or elapsed <= 0:
            return
        self.waiting_mark = now
        self.wait_clock += elapsed
        giver = self.driver.lane.top.node
        self.driver.lane.stand(giver)
        if self.workers:
            part, self.share_rest = divmod(elapsed + self.share_rest, self.workers)
            self.share_clock += part
            giver.shift -= part * self.workers
            self.given += part * self.workers
        elif self._loop_idles():
            part, self.idle_rest = divmod(elapsed + self.idle_rest, self.suspended)
            self.idle_clock += part
            giver.shift -= part * self.suspended

    def charge(self, thread: Thread, now: int) -> None:
        """Book the running lane's time up to now."""
        entry = thread.lane.top
        node = entry.node
        thread.lane.stand(node)
        self._advance(now)
        elapsed = now - thread.lane.mark
        node.self += elapsed
        thread.lane.mark = now
        if entry.waits:
            node.waited += elapsed
        if thread.lane.kind == "task" and entry.span is None and thread.lane.on_driver:
            behalf = thread.base.top.node
            thread.base.stand(behalf)
            node.shift -= elapsed
            behalf.shift += elapsed
        off_cpu = self.cpu.collect(thread, now)
        node.off_cpu += off_cpu
        if thread.own and thread.own_only in (None, node):
            node.cost += max(0, elapsed - max(0, off_cpu))
        if thread.working:
            node.shift += self.share_clock - thread.share_mark
            node.covered += self.wait_clock - thread.cover_mark
        thread.share_mark = self.share_clock
        thread.cover_mark = self.wait_clock

    def restate(self, thread: Thread, now: int) -> None:
        """After the running lane or its innermost span changed: decide which threads work and wait from now on."""
        if thread is self.driver:
            self.waiting = self._loop_idles() or thread.lane.top.waits
            self.waiting_mark = now
            self.share_rest = self.idle_rest = 0
        else:
            self.workers += thread.lane.works - thread.working
            thread.working = thread.lane.works

    def _charge_displaced(self, lane: Lane, now: int) -> None:
        node = lane.top.node
        lane.stand(node)
        gap = now - lane.mark
        lane.mark = now
        node.self += gap
        node.off_cpu += gap
        if lane.kind == "task":
            node.waited += gap
        if lane.on_driver:
            node.shift -= gap
        if lane.suspended:
            node.shift += self.idle_clock - lane.idle_mark
            lane.idle_mark = self.idle_clock

    def _suspend(self, lane: Lane, suspended: bool) -> None:
        self.suspended += suspended - lane.suspended
        lane.suspended = suspended
        lane.idle_mark = self.idle_clock

    def switch_lane(self, thread: Thread, lane: Lane, now: int) -> None:
        previous = thread.lane
        self.charge(thread, now)
        if lane is not previous:
            self._charge_displaced(lane, now)
            self._suspend(previous, previous.on_driver and previous.kind == "task" and previous.open)
            self._suspend(lane, False)
            thread.lane = lane
        self.restate(thread, now)

    def settle(self, now: int) -> None:
        """Book the time of all lanes up to now, open spans included."""
        self._advance(now)
        for thread in self.threads:
            self.charge(thread, now)
        for lane in self.lanes:
            if lane.host is not None and lane.host.lane is not lane and not lane.shared:
                self._charge_displaced(lane, now)

    def resume(self, stopped: int, now: int) -> None:
        """After a pause of the recording, which belongs to no lane and to no open span."""
        gap = now - stopped
        for lane in self.lanes:
            if lane.host is not None:
                lane.mark += gap
                for entry in lane.stack:
                    entry.start += gap
        self.waiting_mark += gap
        for thread in self.threads:
            self.cpu.collect(thread, now)

    def shift(self, start: int, end: int) -> None:
        """All lanes go on as if the clock had stood still from start to end."""

        def behind(mark: int) -> int:
            return max(0, end - max(mark, start))

        for lane in self.lanes:
            gap = behind(lane.mark) if lane.host is not None else 0
            lane.mark += gap
            if lane.stood is not None and lane.stood.left == lane.left:
                lane.stood = replace(lane.stood, left=lane.left + gap)
            lane.left += gap
            for entry in lane.stack:
                entry.start += gap
        for thread in self.threads:
            thread.synced_wall += behind(thread.synced_wall)
        if self.waiting:
            self.waiting_mark += behind(self.waiting_mark)

    def set_driver(self, driver: Thread, now: int) -> None:
        """Call `settle` first."""
        previous = self.driver
        for lane in self.lanes:
            self._set_on_driver(lane, lane.host is driver)
            displaced = lane.host is driver and lane is not driver.lane
            self._suspend(lane, displaced and lane.kind == "task" and lane.open)
        self.workers -= driver.working
        driver.working = False
        self.driver = driver
        self.restate(driver, now)
        self.restate(previous, now)

    def _set_on_driver(self, lane: Lane, on_driver: bool) -> None:
        if lane.on_driver == on_driver:
            return
        sign = -1 if on_driver else 1
        for node in self.nodes:
            if node.lane is lane:
                node.overlap = node.overlapped()
                node.covered = node.self - node.waited - node.overlap
                node.shift += sign * node.self
                calls, own, shift, *rest = node.marked
                node.marked = (calls, own, shift + sign * own, *rest)  # type: ignore[assignment]  # the same six
        lane.left, lane.stood = lane.mark, None
        self.move(lane, on_driver)

    move: Callable[[Lane, bool], None]
    """Set by Lanes: puts a lane into the pool where it belongs from now on."""

    def forget_suspended(self, lane: Lane, now: int) -> None:
        """A suspended lane's last span was ended from elsewhere."""
        if lane.suspended and not lane.open:
            lane.suspended = False
            self.suspended -= 1
            self.restate(self.driver, now)

"""The twin's ring of span events, its iterations and their gains: core/timeline.c and core/iteration.c."""

from __future__ import annotations

from collections import Counter, deque

from rlprof.ledger import rows
from rlprof.ledger.histogram import bucket_of
from rlprof.ledger.twin.records import Entry, Node

_MAX_ROWS = 1 << 13


class Timeline:
    """The last closed spans."""

    def __init__(self, capacity: int = 0) -> None:
        self.capacity = 1 << (capacity - 1).bit_length() if capacity > 0 else 0
        self._events: deque[bytes] = deque(maxlen=self.capacity)
        self._unread = 0

    def add(self, entry: Entry, duration: int, depth: int) -> None:
        if self.capacity:
            self._events.append(rows.EVENT.pack(entry.start, duration, entry.node.id, depth))
            self._unread += 1

    def drain(self) -> tuple[bytes, int]:
        events, lost = b"".join(self._events), self._unread - len(self._events)
        self.clear()
        return events, lost

    def clear(self) -> None:
        self._events.clear()
        self._unread = 0


class Iterations:
    """At each mark, what every node has gained since the last one."""

    def __init__(self) -> None:
        self.count = 0
        self.start = 0
        self.durations: Counter[int] = Counter()
        self.shortest = self.longest = self.sum = 0
        self._begun = 0
        self.steps = 0
        self.episodes = 0
        self._counted = (0, 0)
        self._emitted = 0
        self.open = False
        self._marks: list[bytes] = []
        self._gains: list[bytes] = []

    def mark(self, nodes: list[Node], now: int, closes: bool) -> None:
        merges = self._emitted < self.count
        if self.open:
            self._count_duration(now - self._begun)
            self.count += 1
            self._write(nodes, now)
        elif not merges:
            self._remember(nodes, now)
        self.open = not closes
        self._begun = now

    def leave_out(self, start: int, end: int) -> None:
        """Leave a stop of the process out of the open iteration."""
        self._begun += max(0, end - max(self._begun, start))

    def _count_duration(self, duration: int) -> None:
        self.durations[bucket_of(duration)] += 1
        self.sum += duration
        self.shortest = min(self.shortest, duration) if self.count else duration
        self.longest = max(self.longest, duration)

    def drop(self, nodes: list[Node], now: int) -> None:
        """Discard the open iteration. Earlier ones that wait to be written keep its time."""
        self.open = False
        if self._emitted == self.count:
            self._remember(nodes, now)

    @property
    def gained(self) -> tuple[int, int]:
        """Steps and episodes since the last mark."""
        return self.steps - self._counted[0], self.episodes - self._counted[1]

    def _write(self, nodes: list[Node], now: int) -> None:
        """Write the iterations since the last mark as one mark. If there is no room, the next mark has them."""
        gains = [self._gain(node) for node in nodes if node.marks()[:3] != node.marked[:3]]
        # One iteration always fits, whatever the number of its nodes: merging it with others would not help.
        if len(self._marks) >= _MAX_ROWS or (self._gains and len(self._gains) + len(gains) > _MAX_ROWS):
            return
        self._marks.append(rows.MARK.pack(self.start, now, self._emitted, self.count - 1, *self.gained))
        self._gains += gains
        self._emitted = self.count
        self._remember(nodes, now)

    def write_rest(self, nodes: list[Node], now: int) -> None:
        """No further mark will write what did not fit when recording stopped."""
        if self._emitted < self.count:
            self._write(nodes, now)

    def _gain(self, node: Node) -> bytes:
        calls, own, _shift, *rest = (now - before for now, before in zip(node.marks(), node.marked))
        ledger = node.ledger() - node.marked_ledger()
        return rows.GAIN.pack(self.count - 1, node.id, calls, own, ledger, *rest)

    def _remember(self, nodes: list[Node], now: int) -> None:
        for node in nodes:
            node.marked = node.marks()
        self._counted = (self.steps, self.episodes)
        self.start = now

    def reset(self, now: int) -> None:
        self._marks.clear()
        self._gains.clear()
        self.count = self._emitted = 0
        self.steps = self.episodes = 0
        self._counted = (0, 0)
        self.open = False
        self.start = self._begun = now
        self.durations.clear()
        self.shortest = self.longest = self.sum = 0

    def drain(self) -> tuple[bytes, bytes]:
        drained = b"".join(self._marks), b"".join(self._gains)
        self._marks.clear()
        self._gains.clear()
        return drained

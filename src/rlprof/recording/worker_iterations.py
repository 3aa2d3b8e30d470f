"""The workers' part of each iteration. The rows of an iteration mark must sum to its wall time, with workers too.

The driver's rows have what it gave away in each iteration. The workers' rows only have what they received since the
last flush. So the missing time of each mark is distributed in proportion to that, and their calls are spread over
the marks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from operator import attrgetter

from rlprof.ledger.rows import GAIN, MARK, IterationMark, NodeRow, unpack_gains, unpack_marks
from rlprof.ledger.sharing import apportion
from rlprof.session.records import Flush

MOST_MARKS = 4
MOST_ROWS = 128
"""Most rows per flush. Each mark has one for every node of every active worker."""

counted = attrgetter("calls", "self", "overlapped", "waited", "off_cpu")
"""The columns of a node's row that are spread."""

Figures = list[int]
"""Calls, self, ledger, overlapped, waited, off-CPU."""


class WorkerIterations:
    """Remembers the workers' rows at the time when marks were last written."""

    def __init__(self) -> None:
        self._written: dict[int, tuple[int, ...]] = {}
        self._received: dict[int, int] = {}

    def forget(self) -> None:
        self._written.clear()
        self._received.clear()

    def add_to(self, batch: Flush, rows: Sequence[NodeRow]) -> None:
        """Complete the marks and gains that the driver's ledger has written."""
        marks = list(unpack_marks(batch.iterations))
        if not marks:
            return
        spread, received = self._since(rows)
        size = -(-len(marks) // max(1, min(MOST_MARKS, MOST_ROWS // max(1, len(spread)))))
        groups = [marks[start : start + size] for start in range(0, len(marks), size)]
        gains = self._merged(batch.gains, groups)
        walls = [sum(mark.end - mark.start for mark in group) for group in groups]
        batch.between = {
            group[-1].last: group[-1].end - group[0].start - wall
            for group, wall in zip(groups, walls)
            if len(group) > 1
        }
        batch.iterations = b"".join(
            MARK.pack(
                *IterationMark(
                    start=group[0].start,
                    end=group[-1].end,
                    first=group[0].first,
                    last=group[-1].last,
                    steps=sum(mark.steps for mark in group),
                    episodes=sum(mark.episodes for mark in group),
                )
            )
            for group in groups
        )
        nodes = list(spread)
        weights = [received[node] for node in nodes]
        total, before = sum(walls), 0
        packed = []
        for group, wall in zip(groups, walls):
            own = gains[group[-1].last]
            missing = wall - sum(figures[2] for figures in own.values())
            ledger = dict(zip(nodes, apportion(missing, weights)))
            if not any(weights):
                _give_back(own, missing)
            for node in nodes:
                parts = [_part(count, before, before + wall, total) for count in spread[node]]
                figures = [*parts[:2], ledger[node], *parts[2:]]
                if any(figures):
                    own[node] = figures
            before += wall
            packed += [GAIN.pack(group[-1].last, node, *figures) for node, figures in own.items()]
        batch.gains = b"".join(packed)

    def _since(self, rows: Sequence[NodeRow]) -> tuple[dict[int, tuple[int, ...]], dict[int, int]]:
        """The gain of each row since the last marks: the columns that are spread, and what was received."""
        nothing = (0, 0, 0, 0, 0)
        spread, received = {}, {}
        for row in rows:
            node = row.id
            if row.operation < 0:
                continue  # no span was open, so it is no part of the driver's time
            now = counted(row)
            before = self._written.get(node, nothing)
            if now != before or row.ledger != self._received.get(node, 0):
                gained = [new - old for new, old in zip(now, before)]
                spread[node] = (max(0, gained[0]), *gained[1:])
                received[node] = max(0, row.ledger - self._received.get(node, 0))
                self._written[node], self._received[node] = now, row.ledger
        return spread, received

    @staticmethod
    def _merged(gains: bytes, groups: Sequence[Sequence[IterationMark]]) -> defaultdict[int, dict[int, Figures]]:
        """The driver's rows by the last iteration of their group, then by node."""
        group_of = {mark.last: group[-1].last for group in groups for mark in group}
        merged: defaultdict[int, dict[int, Figures]] = defaultdict(dict)
        for iteration, node, *figures in unpack_gains(gains):
            rows = merged[group_of[iteration]]
            known = rows.get(node)
            rows[node] = figures if known is None else [one + other for one, other in zip(known, figures)]
        return merged


def _part(count: int, start: int, end: int, total: int) -> int:
    """The part of a count that is spread evenly over `total`. Parts are whole numbers that sum to the count."""
    return count if end - start == total else count * end // total - count * start // total


def _give_back(own: dict[int, Figures], missing: int) -> None:
    """Return time to the waits that it came from; without a wait, to the time in which no span was open."""
    gave = [max(0, figures[1] - figures[2]) if figures[4] else 0 for figures in own.values()]
    if any(gave):
        for figures, back in zip(own.values(), apportion(missing, gave)):
            figures[2] += back
    elif missing:
        own.setdefault(0, [0] * 6)[2] += missing

"""The workers' part of each iteration. The rows of an iteration mark must sum to its wall time, with workers too.

The driver's rows have what it gave away in each iteration. The workers' rows only have what they received since the
last flush. So the missing time of each mark is distributed in proportion to that, and their calls are spread over
the marks.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from rlprof.ledger.sharing import LEDGER, apportion
from rlprof.session.records import Batch

_MARK = struct.Struct("=qqIIqq")
_GAIN = struct.Struct("=IIQqqqqq")

MOST_MARKS = 4
MOST_ROWS = 128
"""Most rows per flush. Each mark has one for every node of every active worker."""

counted = itemgetter(4, 6, 8, 9, 10)
"""The columns of a node's row that are spread: calls, self, overlapped, waited, off-CPU."""

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

    def add_to(self, batch: Batch, rows: Sequence[tuple[Any, ...]]) -> None:
        """Complete the marks and gains that the driver's ledger has written."""
        marks = list(_MARK.iter_unpack(batch.iterations))
        if not marks:
            return
        spread, received = self._since(rows)
        size = -(-len(marks) // max(1, min(MOST_MARKS, MOST_ROWS // max(1, len(spread)))))
        groups = [marks[start : start + size] for start in range(0, len(marks), size)]
        gains = self._merged(batch.gains, groups)
        walls = [sum(mark[1] - mark[0] for mark in group) for group in groups]
        batch.between = {
            group[-1][3]: group[-1][1] - group[0][0] - wall for group, wall in zip(groups, walls) if len(group) > 1
        }
        batch.iterations = b"".join(
            _MARK.pack(
                group[0][0], group[-1][1], group[0][2], group[-1][3],
                sum(mark[4] for mark in group), sum(mark[5] for mark in group),
            )
            for group in groups
        )  # fmt: skip
        nodes = list(spread)
        weights = [received[node] for node in nodes]
        total, before = sum(walls), 0
        packed = []
        for group, wall in zip(groups, walls):
            own = gains[group[-1][3]]
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
            packed += [_GAIN.pack(group[-1][3], node, *figures) for node, figures in own.items()]
        batch.gains = b"".join(packed)

    def _since(self, rows: Sequence[tuple[Any, ...]]) -> tuple[dict[int, tuple[int, ...]], dict[int, int]]:
        """The gain of each row since the last marks: the columns that are spread, and what was received."""
        nothing = (0, 0, 0, 0, 0)
        spread, received = {}, {}
        for row in rows:
            node, operation = row[0], row[3]
            if operation < 0:
                continue  # no span was open, so it is no part of the driver's time
            now = counted(row)
            before = self._written.get(node, nothing)
            if now != before or row[LEDGER] != self._received.get(node, 0):
                gained = [new - old for new, old in zip(now, before)]
                spread[node] = (max(0, gained[0]), *gained[1:])
                received[node] = max(0, row[LEDGER] - self._received.get(node, 0))
                self._written[node], self._received[node] = now, row[LEDGER]
        return spread, received

    @staticmethod
    def _merged(gains: bytes, groups: Sequence[Sequence[tuple[int, ...]]]) -> defaultdict[int, dict[int, Figures]]:
        """The driver's rows by the last iteration of their group, then by node."""
        group_of = {mark[3]: group[-1][3] for group in groups for mark in group}
        merged: defaultdict[int, dict[int, Figures]] = defaultdict(dict)
        for iteration, node, *figures in _GAIN.iter_unpack(gains):
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

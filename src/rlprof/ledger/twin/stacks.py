"""The twin's samples of the Python stack: see core/stacks.c.

No thread of Python's can sample without the GIL, so nothing ticks by itself here. rlprof's flushing thread calls
`stack_tick`.
"""

from __future__ import annotations

import sys
from types import CodeType, FrameType
from typing import Any

from rlprof.ledger.stacks import EVERYTHING, MOST_FRAMES, MOST_NS
from rlprof.ledger.twin.records import Node, Thread

ALWAYS = -(2**63)
MOST_RECORDS = 10_000


class Stacks:
    """The log of samples and moves since the last drain."""

    def __init__(self) -> None:
        self.on = False
        self._ticked = 0
        self._log: list[tuple[Any, ...]] = []
        self._numbers: dict[tuple[int, int], int] = {}
        """By code object and line. The code objects are held, so no other gets the same id."""
        self._lines: list[tuple[CodeType, int]] = []
        self._drained = self._lost = 0

    def begin(self, on: bool, now: int) -> None:
        self.on = on
        if on:
            self._ticked = now
            self._log.clear()
            self._drained = self._lost = 0

    def reset(self) -> None:
        self._log.clear()
        self._lost = 0

    def tick(self, thread: Thread, now: int, started: int) -> bool:
        frame = sys._current_frames().get(thread.ident)
        ns = min(now - max(self._ticked, started), MOST_NS)
        self._ticked = now
        if len(self._log) >= MOST_RECORDS:
            self._lost += ns
            return True
        self._log.append((now, thread.lane.stack[-1].node.id, ns, 0, self._stack(frame)))
        return True

    def move(self, source: Node | None, to: Node | None, since: int = ALWAYS) -> None:
        if self.on:
            self._log.append((since, EVERYTHING if source is None else source.id, EVERYTHING if to is None else to.id))

    def drain(self) -> tuple[list[tuple[Any, ...]], list[tuple[CodeType, int]], int, int]:
        log, self._log = self._log, []
        lines = self._lines[self._drained :]
        self._drained = len(self._lines)
        return log, lines, self._lost, 0

    def _stack(self, frame: FrameType | None) -> tuple[int, ...]:
        found = []
        while frame is not None:
            found.append(self._number(frame.f_code, frame.f_lineno))
            frame = frame.f_back
        half = MOST_FRAMES // 2
        found[half : len(found) - half] = found[half : len(found) - half] if len(found) <= MOST_FRAMES else []
        return tuple(reversed(found))

    def _number(self, code: CodeType, line: int | None) -> int:
        number = self._numbers.setdefault((id(code), line or 0), len(self._lines))
        if number == len(self._lines):
            self._lines.append((code, line or 0))
        return number

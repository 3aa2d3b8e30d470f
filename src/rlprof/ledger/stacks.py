"""Adds up the samples of the Python stack that a ledger takes, by node and by line.

A sample stands for the time since the one before. So the unit is ns, and samples of different rates can be compared.
"""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

from rlprof.ledger.code_files import OWN, USER, owner_of

MOST_STACKS = 20_000
"""Number of different stacks. Beyond it, further ones keep only the user's frames; beyond a tenth more, none."""

MOST_FRAMES = 128
"""Frames of one stack. The middle of a deeper one is left out."""

RECENT = 4_096
"""Newest samples that can still be moved on their own: about three minutes."""

MOST_NS = 300_000_000
"""Most that one sample stands for, in ns. A longer time between two ticks may be a stop of the process."""

DRIVER_PERIOD = 50_000_000
WORKER_PERIOD = 200_000_000
ELSEWHERE_PERIOD = 100_000_000
"""Where no call on the main thread can read the stack: other threads than the main one, and the Python twin."""

EVERYTHING = -1
"""In the place of a node in a move: all nodes, or none."""


class CodeLine(NamedTuple):
    """A line in a function."""

    file: str
    function: str
    line: int
    user: bool


class Total(NamedTuple):
    """What was sampled in one stack: ns, and the change of resident memory in bytes."""

    ns: int
    memory: int


Key = tuple[int, tuple[int, ...]]
"""A node, and the numbers of frames, outermost first."""


class StackTotals:
    """The samples of one ledger so far."""

    def __init__(self, most: int = MOST_STACKS) -> None:
        self.frames: list[CodeLine] = []
        self.totals: dict[Key, Total] = {}
        """A stack whose samples were moved elsewhere stays, with 0."""
        self.changed: set[Key] = set()
        """Stacks that have changed since somebody cleared this."""
        self.lost_ns = 0
        self.cpu_ns = 0
        """CPU time of the thread that decides when to sample."""
        self._most = most
        self._lost_here = 0
        self._numbers: list[int] = []
        """By the ledger's number of a line: the frame; -1: rlprof's own."""
        self._known: dict[CodeLine, int] = {}
        self._recent: deque[tuple[int, Key, Total]] = deque(maxlen=RECENT)

    def take(self, ledger: Any) -> None:
        """Add the ledger's new samples."""
        records, lines, lost, self.cpu_ns = ledger.drain_stacks()
        self._numbers += [self._number(code, line) for code, line in lines]
        for record in records:
            if len(record) == 3:
                self._move(*record)
            else:
                self._add(*record)
        self.lost_ns = lost + self._lost_here

    def forget(self) -> None:
        """The ledger was reset."""
        self.totals.clear()
        self.changed.clear()
        self._recent.clear()
        self.lost_ns = self._lost_here = 0

    def _number(self, code: Any, line: int) -> int:
        owner = owner_of(code.co_filename)
        if owner == OWN:
            return -1
        name = getattr(code, "co_qualname", code.co_name)
        frame = CodeLine(_text(code.co_filename[-500:]), _text(name[:200]), max(0, line or 0), owner == USER)
        number = self._known.setdefault(frame, len(self.frames))
        if number == len(self.frames):
            self.frames.append(frame)
        return number

    def _add(self, time: int, node: int, ns: int, memory: int, lines: tuple[int, ...]) -> None:
        numbers = self._numbers
        key = node, tuple(number for number in (numbers[line] for line in lines) if number >= 0)
        if key not in self.totals and len(self.totals) >= self._most:
            key = node, tuple(number for number in key[1] if self.frames[number].user)
            if key not in self.totals and len(self.totals) >= self._most + self._most // 10:
                self._lost_here += ns
                return
        gained = Total(ns, memory)
        self._gain(key, gained)
        self._recent.append((time, key, gained))

    def _gain(self, key: Key, gained: Total, sign: int = 1) -> None:
        ns, memory = self.totals.get(key, (0, 0))
        self.totals[key] = Total(ns + sign * gained.ns, memory + sign * gained.memory)
        self.changed.add(key)

    def _move(self, since: int, source: int, to: int) -> None:
        """Samples of a node since then belong to another: see core/stacks.c."""
        whole = since <= -(2**62)
        recent = self._recent
        # The newest come last, and only few are newer than what phases move. So this does not look at all of them.
        places = list(range(len(recent) - 1, -1, -1)) if whole else self._since(since)
        found = list(self.totals.items()) if whole else [recent[place][1:] for place in places]
        for key, total in found:
            if source in (EVERYTHING, key[0]) and key[0] != to and total != (0, 0):
                self._gain(key, total, -1)
                if to != EVERYTHING:
                    self._gain((to, key[1]), total)
        for place in places:
            time, key, gained = recent[place]
            if source in (EVERYTHING, key[0]):
                recent[place] = time, (to, key[1]), gained

    def _since(self, since: int) -> list[int]:
        """Places of the recent samples after a time, newest first."""
        places = []
        for place in range(len(self._recent) - 1, -1, -1):
            if self._recent[place][0] <= since:
                break
            places.append(place)
        return places


def _text(text: str) -> str:
    """A name may hold half a surrogate, which UTF-8 cannot encode."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()

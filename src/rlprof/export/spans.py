"""The timeline's spans as other tools want them: nested, each with its parent, on tracks where nothing crosses."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import BinaryIO

import msgspec

from rlprof.ledger.rows import EVENT
from rlprof.ledger.snapshot import Node
from rlprof.session.reader import Session

NOT_KEPT = "spans were not kept, only their sums; record(timeline=100_000) keeps them for an export"

_CHUNK = 1024
"""Events that are Python objects at one time."""


@dataclass(slots=True)
class Span:
    """One execution of an operation. Times are ns of the ledger's clock."""

    number: int
    """From 1, the last to end first."""
    start: int
    end: int
    depth: int
    node: Node
    track: int
    """0, or higher where spans of one lane cross because they were not left in the order they were entered."""
    parent: Span | None
    """The innermost span around it on its track that was kept."""


class Spans:
    """What a session's timeline holds."""

    def __init__(self, session: Session) -> None:
        # The timeline before the call tree: while the session is being written, the tree may only know more places.
        self._blocks = [block for block in session.timeline() if block]
        self._lost = session.timeline_lost()
        self.snapshot = session.snapshot()
        self._nodes = {node.id: node for node in self.snapshot.nodes if node.operation is not None}
        self._unknown = 0

    @property
    def kept(self) -> bool:
        return bool(self._blocks)

    @property
    def lost(self) -> int:
        """Ended spans that are not here; complete once all have been read."""
        return self._lost + self._unknown

    def earliest(self) -> int | None:
        """When the first of them began, which may be before the recording did."""
        # An event is three times 8 bytes, the first of which is its start.
        return min((min(array("q", block)[::3]) for block in self._blocks), default=None)

    def remark(self) -> str | None:
        """What a reader of the export must know; None where it is complete."""
        if not self.kept:
            return NOT_KEPT
        if not self.lost:
            return None
        return (
            f"{self.lost:,} of {self._lost + self._count():,} spans are missing: the timeline did not hold them all;"
            " a larger record(timeline=...) may keep more"
        )

    def __iter__(self) -> Iterator[Span]:
        """The last to end first.

        The ledger writes a span when it ends, so a parent follows its children. Read backwards, parents come first, and
        a stack as deep as the call tree is all that nesting takes.
        """
        tracks: defaultdict[int, list[list[Span]]] = defaultdict(list)
        self._unknown = number = 0
        for start, duration, id, depth in self._backwards():
            node = self._nodes.get(id)
            if node is None:  # the ledger was reset since, or the file is damaged: there is no name for it
                self._unknown += 1
                continue
            number += 1
            span = Span(number, start, start + duration, depth, node, 0, None)
            _place(span, tracks[node.lane])
            yield span

    def _count(self) -> int:
        return sum(map(len, self._blocks)) // EVENT.size

    def _backwards(self) -> Iterator[tuple[int, int, int, int]]:
        size = _CHUNK * EVENT.size
        for block in reversed(self._blocks):
            for end in range(len(block), 0, -size):
                yield from reversed(list(EVENT.iter_unpack(block[max(0, end - size) : end])))


def _place(span: Span, tracks: list[list[Span]]) -> None:
    """Onto the first track of its lane where it crosses nothing. A track is the stack of the spans that are open."""
    for number, stack in enumerate(tracks):
        while stack and _is_over(stack[-1], span):
            stack.pop()
        if not stack or (stack[-1].start <= span.start and stack[-1].end >= span.end and stack[-1].depth < span.depth):
            span.track = number
            span.parent = stack[-1] if stack else None
            stack.append(span)
            return
    span.track = len(tracks)
    tracks.append([span])


def _is_over(later: Span, span: Span) -> bool:
    """Whether a span began only when this one had ended. At one and the same instant, the depths decide."""
    if later.start == span.end:
        return not (span.start == span.end and later.depth < span.depth)
    return later.start > span.end


def write_items(file: BinaryIO, items: Iterable[object]) -> None:
    """The items of a JSON array, without its brackets, a chunk at a time."""
    source = iter(items)
    first = True
    while chunk := list(islice(source, _CHUNK)):
        file.write((b"" if first else b",\n") + msgspec.json.encode(chunk)[1:-1])
        first = False

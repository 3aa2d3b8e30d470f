"""The spans of the timeline as other tools need them: nested, each with its parent, on tracks without crossing
spans."""

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
from rlprof.session.reader import IterationRow, Session

NOT_KEPT = (
    "the session has no single spans, only their sums. To keep spans, record with `rlprof run --timeline 100000`, "
    "or record(timeline=100_000) in a program that calls record()"
)

_CHUNK = 1024
"""Number of events that are Python objects at one time."""


@dataclass(slots=True)
class Span:
    """One call of an operation. Times are in ns on the ledger's clock."""

    number: int
    """Counts from 1; the span that ended last is first."""
    start: int
    end: int
    depth: int
    node: Node
    track: int
    """0, or higher if spans of a lane cross because they did not end in reverse order of their start."""
    parent: Span | None
    """The innermost kept span around it on its track."""


class Spans:
    """The spans in a session's timeline."""

    def __init__(self, session: Session) -> None:
        # The timeline is read before the call tree, so that the tree has all its places while the session is written.
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
        """Number of ended spans that are missing. Final after all spans have been read."""
        return self._lost + self._unknown

    def earliest(self) -> int | None:
        """Start of the earliest span, which may be before the start of the recording."""
        # An event is three times 8 bytes, the first of which is its start.
        return min((min(array("q", block)[::3]) for block in self._blocks), default=None)

    def remark(self) -> str | None:
        """A remark for the reader of an export; None if it is complete."""
        if not self.kept:
            return NOT_KEPT
        if not self.lost:
            return None
        return (
            f"{self.lost:,} of {self._lost + self._count():,} spans are missing because the timeline was full;"
            " a larger --timeline, or record(timeline=...), may keep more"
        )

    def __iter__(self) -> Iterator[Span]:
        """The span that ended last comes first.

        The ledger writes a span when it ends, so a parent follows its children. Read backwards, parents come first, and
        nesting only needs a stack as deep as the call tree.
        """
        tracks: defaultdict[int, list[list[Span]]] = defaultdict(list)
        self._unknown = number = 0
        for start, duration, id, depth in self._backwards():
            node = self._nodes.get(id)
            if node is None:  # the ledger was reset since, or the file is damaged: the name is unknown
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
    """Put a span on the first track of its lane where it crosses no other. A track is the stack of its open spans."""
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
    """True if `later` began after `span` had ended. At the same instant, the depths decide."""
    if later.start == span.end:
        return not (span.start == span.end and later.depth < span.depth)
    return later.start > span.end


def iteration_name(iteration: IterationRow) -> str:
    """`iteration 7`, or `iterations 7 to 9` if the session has merged them."""
    first, last = iteration.first + 1, iteration.last + 1
    return f"iterations {first} to {last}" if last > first else f"iteration {first}"


def write_items(file: BinaryIO, items: Iterable[object]) -> None:
    """Write the items of a JSON array, without its brackets, in chunks."""
    source = iter(items)
    first = True
    while chunk := list(islice(source, _CHUNK)):
        file.write((b"" if first else b",\n") + msgspec.json.encode(chunk)[1:-1])
        first = False

"""Reads the rows of one moment that a frame is made of. Takes some milliseconds."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlprof.analysis.facts import UNENDED, ended
from rlprof.analysis.window import NodeAt, Window, window
from rlprof.ledger.rows import LaneRow
from rlprof.ledger.snapshot import distinct
from rlprof.session.info import Info
from rlprof.session.live import LiveSession, NodePlace
from rlprof.session.reader import Gain, IterationRow, State
from rlprof.session.records import Mark, Sample

WINDOW_NS = 10_000_000_000
"""Least length of the window of now."""
LEAST_INSIDE = 0.97
"""Least part of the window that is inside of iterations, if their own figures are shown."""
MOST_ITERATIONS = 300
MOST_GAINS = 20_000
"""Rows that are summed for the window of now, and nodes that are read completely for it."""
MOST_SAMPLES = 120
MOST_MARKS = 20


@dataclass(frozen=True, slots=True)
class Reading:
    info: Info
    state: State | None
    ended: str
    iterations: Sequence[IterationRow]
    """The newest ones."""
    lanes: Sequence[LaneRow]
    samples: Sequence[Sample]
    marks: Sequence[Mark]
    window: Window
    window_iterations: int
    window_steps: int
    window_ns: int
    places: Mapping[int, NodeAt]


class Reader:
    """Remembers from one reading to the next where nodes are, and what they had gained. Not for two threads at once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.places: dict[int, NodeAt] = {}
        self.categories: dict[str, str] = {}
        """By operation."""
        self._earlier: deque[tuple[State, dict[int, NodePlace]]] = deque()
        """Earlier readings of a training whose iterations do not tell all, the oldest first."""

    def read(self) -> Reading:
        with LiveSession(self._path) as session:
            state, how = session.state, ended(session)
            iterations = session.newest_iterations(MOST_ITERATIONS)
            lanes = session.lane_rows()
            samples, marks = session.newest_samples(MOST_SAMPLES), session.newest_marks(MOST_MARKS)
            chosen = self._newest(iterations)
            count = sum(row.last - row.first + 1 for row in chosen)
            steps, length = sum(row.steps for row in chosen), _length(chosen)
            if how in UNENDED and state is not None and sum(row.wall_ns for row in chosen) < LEAST_INSIDE * length:
                chosen = []  # much happens between the iterations, which no iteration has
            if chosen or how not in UNENDED or state is None:
                gains = session.gains_of(chosen)
            elif since := self._gained(session, state):
                gains, steps, count, length = since
            else:
                gains = []
            self.find(session, {*(gain.node for gain in gains), *(lane.node for lane in lanes)})
            info, cost = session.info, session.cost
        seen = window(gains, self.places, cost)
        return Reading(
            info=info,
            state=state,
            ended=how,
            iterations=iterations,
            lanes=lanes,
            samples=samples,
            marks=marks,
            window=seen,
            window_iterations=count,
            window_steps=steps,
            window_ns=length,
            places=self.places,
        )

    def _newest(self, iterations: Sequence[IterationRow]) -> list[IterationRow]:
        """The newest iterations that cover the window, as far as their rows are not too many."""
        most = max(1, MOST_GAINS // max(1, len(self.places)))
        first, length = len(iterations), 0
        while first > 0 and length < WINDOW_NS and len(iterations) - first < most:
            first -= 1
            length += iterations[first].wall_ns
        return list(iterations[first:])

    def _gained(self, session: LiveSession, state: State) -> tuple[list[Gain], int, int, int] | None:
        """What nodes have gained since the reading about ten seconds ago, or the first one; with steps, iterations and
        ns. None if there is no earlier reading."""
        if len(self.places) > MOST_GAINS:
            return None
        now = session.node_places()
        earlier = self._earlier
        if earlier and earlier[-1][0].wall > state.wall:
            earlier.clear()  # the ledger was reset
        if not earlier or earlier[-1][0].time != state.time:
            earlier.append((state, now))
        while len(earlier) > 2 and state.wall - earlier[1][0].wall >= WINDOW_NS:
            earlier.popleft()
        before, had = earlier[0]
        if before.wall == state.wall:
            return None
        gains = [_gain(node, had.get(node.id)) for node in now.values()]
        return gains, state.steps - before.steps, state.iterations - before.iterations, state.wall - before.wall

    def find(self, session: LiveSession, nodes: set[int]) -> None:
        """Learn where nodes are that were not seen before."""
        if nodes <= self.places.keys():
            return
        found, names = session.node_places(), session.operation_names()
        self.categories |= {distinct(name): category for name, category in names.values()}
        for id, node in sorted(found.items()):
            if id in self.places:
                continue
            above: list[NodePlace] = []
            at: NodePlace | None = node
            while at is not None and at.id not in self.places and len(above) <= len(found):
                above.append(at)
                at = found.get(at.parent)
            for one in reversed(above):
                parent = self.places.get(one.parent)
                path = parent.path if parent else ()
                if one.operation in names:
                    path = (*path, distinct(names[one.operation][0]))
                self.places[one.id] = NodeAt(one.parent if one.parent >= 0 else None, one.lane, path)


def _length(rows: Sequence[IterationRow]) -> int:
    """From the first start to the last end, with all that lies between."""
    return rows[-1].end - rows[0].start if rows else 0


def _gain(node: NodePlace, before: NodePlace | None) -> Gain:
    if before is None:
        return Gain(node.id, node.calls, node.self_ns, node.ledger_ns, node.overlapped_ns, node.waited_ns, 0)
    return Gain(
        node.id, max(0, node.calls - before.calls), node.self_ns - before.self_ns, node.ledger_ns - before.ledger_ns,
        node.overlapped_ns - before.overlapped_ns, node.waited_ns - before.waited_ns, 0,
    )  # fmt: skip

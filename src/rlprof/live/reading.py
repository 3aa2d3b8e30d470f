"""Reads the rows of one moment that a frame is made of. Takes some milliseconds."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
SILENT = 3.0
"""Times the length of an iteration after which the newest one does not show any more what happens now."""
MOST_ITERATIONS = 2_000
MOST_GAINS = 30_000
"""Rows that are summed for the window of now, and nodes that are read completely for it."""
FEW_NODES = 2_000
"""So many nodes are always read completely, so that an earlier reading is there when it is needed."""
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
    """From the end of the iteration before the window to the end of the newest one, with all that lies between."""
    gained_ns: int
    """Time that `window` covers."""
    places: Mapping[int, NodeAt]


@dataclass(frozen=True, slots=True)
class _Now:
    """The window of now: what nodes have gained in it, and what was counted. The other fields are as in Reading."""

    gains: Sequence[Gain] = ()
    steps: int = 0
    iterations: int = 0
    ns: int = 0
    gained_ns: int = 0


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
            now = self._now(session, state, iterations, goes_on=how in UNENDED)
            self.find(session, {*(gain.node for gain in now.gains), *(lane.node for lane in lanes)})
            info, cost = session.info, session.cost
        seen = window(now.gains, self.places, cost)
        return Reading(
            info=info,
            state=state,
            ended=how,
            iterations=iterations,
            lanes=lanes,
            samples=samples,
            marks=marks,
            window=seen,
            window_iterations=now.iterations,
            window_steps=now.steps,
            window_ns=now.ns,
            gained_ns=now.gained_ns,
            places=self.places,
        )

    def _now(self, session: LiveSession, state: State | None, rows: Sequence[IterationRow], goes_on: bool) -> _Now:
        """The newest iterations; or what came since an earlier reading, if they do not tell all."""
        if state is None:
            return _Now()
        chosen, start = self._newest(rows)
        inside, count = sum(row.wall_ns for row in chosen), sum(row.last - row.first + 1 for row in chosen)
        length = chosen[-1].end - start if chosen else 0
        silent = bool(chosen) and state.time - chosen[-1].end > max(WINDOW_NS, SILENT * length / count)
        has_gaps = inside < LEAST_INSIDE * length
        since = None
        if goes_on and (len(self.places) <= FEW_NODES or not chosen or silent or has_gaps):
            since = self._gained(session, state)
        if not chosen or (goes_on and silent):
            return since or _Now()
        pace = _Now((), sum(row.steps for row in chosen), count, length)
        if goes_on and has_gaps:
            return pace if since is None else replace(pace, gains=since.gains, gained_ns=since.gained_ns)
        return replace(pace, gains=session.gains_of(chosen), gained_ns=inside)

    def _newest(self, rows: Sequence[IterationRow]) -> tuple[list[IterationRow], int]:
        """The newest iterations that cover the window, as far as their gains are not too many; and the end of the one
        before them."""
        most = max(1, MOST_GAINS // max(1, len(self.places)))
        first, start = len(rows), 0
        while first > 0 and len(rows) - first < most:
            first -= 1
            start = rows[first - 1].end if first else rows[0].start
            if rows[-1].end - start >= WINDOW_NS:
                break
        return list(rows[first:]), start

    def _gained(self, session: LiveSession, state: State) -> _Now | None:
        """What came since the reading about ten seconds ago, or since the first one. None if there is none."""
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
        length = state.wall - before.wall
        if not length:
            return None
        gains = [_gain(node, had.get(node.id)) for node in now.values()]
        return _Now(gains, state.steps - before.steps, state.iterations - before.iterations, length, length)

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


def _gain(node: NodePlace, before: NodePlace | None) -> Gain:
    if before is None:
        return Gain(node.id, node.calls, node.self_ns, node.ledger_ns, node.overlapped_ns, node.waited_ns, 0)
    return Gain(
        node.id, max(0, node.calls - before.calls), node.self_ns - before.self_ns, node.ledger_ns - before.ledger_ns,
        node.overlapped_ns - before.overlapped_ns, node.waited_ns - before.waited_ns, 0,
    )  # fmt: skip

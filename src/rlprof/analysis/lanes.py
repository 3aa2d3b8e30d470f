"""What did each lane do over the iterations? A table of bounded size, for a timeline with one strip per lane."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlprof.analysis.breakdown import UNATTRIBUTED
from rlprof.analysis.lane_work import DRIVER
from rlprof.analysis.series import after_training, calls_inside, groups_of, own_share
from rlprof.ledger.snapshot import Lane, Snapshot
from rlprof.session.reader import IterationRow, Session

POINTS = 100
MOST_LANES = 16
LEAST_WORK = 0.005
"""Fraction of the time. A lane that works less has an empty strip."""
MOST_OPERATIONS = 6
"""Of one lane. The others are summed."""
OTHERS = "other operations"


@dataclass(frozen=True, slots=True)
class LaneStrip:
    """One lane: a thread, an asyncio task or a worker process."""

    name: str
    kind: str
    on_driver: bool
    operations: dict[str, tuple[int, ...]]
    """Time at work in ns, without waiting, by operation and point; largest first. The driver's time without an open
    span is `unattributed`."""


@dataclass(frozen=True, slots=True)
class LaneTimeline:
    """Columns of equal length. A point is one or more neighbouring iterations, counted from 1."""

    first: tuple[int, ...] = ()
    last: tuple[int, ...] = ()
    wall_ns: tuple[int, ...] = ()
    strips: tuple[LaneStrip, ...] = ()
    """The driver first, then the busiest."""
    hidden: int = 0
    """Lanes that did less than those in `strips`."""


def lane_timeline(session: Session, snapshot: Snapshot, iterations: Sequence[IterationRow]) -> LaneTimeline:
    nodes = {node.id: node for node in snapshot.nodes}
    parents = {node.id: node.parent for node in snapshot.nodes}
    groups = list(groups_of(iterations, POINTS))
    wall = [sum(one.wall_ns for one in group) for group in groups]
    beyond = after_training(snapshot)
    lanes: dict[str, Lane] = {}
    at_work: defaultdict[str, defaultdict[str, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0] * len(groups)))
    for point, group in enumerate(groups):
        gains = session.gains(group[0], group[-1])
        inside = calls_inside(gains, parents)
        for gain in gains:
            node = nodes.get(gain.node)
            if node is None:
                continue
            if gain.node in beyond:
                wall[point] -= gain.ledger_ns
                continue
            lane = snapshot.lanes[node.lane]
            if node.operation is None and not lane.on_driver:
                continue  # time without a span on another lane is not known to be work
            work = max(0, gain.self_ns - gain.waited_ns) * (1 - own_share(gain, inside[gain.node], session.cost))
            # Tasks on the driver's thread belong to the driver.
            key = DRIVER if lane.on_driver else f"{lane.name} #{lane.id}"
            lanes.setdefault(key, lane)
            at_work[key][node.operation or UNATTRIBUTED][point] += round(work)
    busy = {key: sum(map(sum, times.values())) for key, times in at_work.items()}
    least = LEAST_WORK * sum(wall)
    shown = [key for key in busy if lanes[key].on_driver or busy[key] >= least]
    order = sorted(shown, key=lambda key: (not lanes[key].on_driver, -busy[key]))[:MOST_LANES]
    names = Counter(lane.name for lane in lanes.values())
    return LaneTimeline(
        first=tuple(group[0].first + 1 for group in groups),
        last=tuple(group[-1].last + 1 for group in groups),
        wall_ns=tuple(wall),
        strips=tuple(_strip(key, lanes[key], names, at_work[key]) for key in order),
        hidden=len(busy) - len(order),
    )


def _strip(key: str, lane: Lane, names: Mapping[str, int], at_work: Mapping[str, Sequence[int]]) -> LaneStrip:
    """The largest operations of a lane. Only lanes with equal names have their number in it."""
    by_size = sorted((name for name in at_work if any(at_work[name])), key=lambda name: -sum(at_work[name]))
    shown = {name: tuple(at_work[name]) for name in by_size[:MOST_OPERATIONS]}
    if rest := by_size[MOST_OPERATIONS:]:
        shown[OTHERS] = tuple(map(sum, zip(*(at_work[name] for name in rest))))
    name = f"driver ({lane.name})" if lane.on_driver else lane.name if names[lane.name] == 1 else key
    return LaneStrip(name, lane.kind, lane.on_driver, shown)

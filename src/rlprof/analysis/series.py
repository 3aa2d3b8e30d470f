"""How did the accounts change over the iterations? At most a few hundred points; each sums to its wall time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rlprof.analysis.breakdown import RLPROF, UNATTRIBUTED
from rlprof.ledger.catalogue import AFTER_TRAINING
from rlprof.ledger.snapshot import Snapshot, SpanCost
from rlprof.session.reader import Gain, IterationRow, Session

POINTS = 300
MOST_BEYOND = 0.1
"""Fraction of the last iteration that may lie after the training."""


@dataclass(frozen=True, slots=True)
class Series:
    """Columns of equal length. A point is one or more neighbouring iterations, counted from 1. Times are in ns."""

    first: tuple[int, ...]
    last: tuple[int, ...]
    start_ns: tuple[int, ...]
    """Time since recording began."""
    wall_ns: tuple[int, ...]
    steps: tuple[int, ...]
    episodes: tuple[int, ...]
    ledger_ns: dict[str, tuple[int, ...]]
    """By operation, including `unattributed` and `rlprof`. The values of a point sum to its wall time."""
    calls: dict[str, tuple[int, ...]]

    def __len__(self) -> int:
        return len(self.first)

    def check(self) -> None:
        """Raise AssertionError if a point does not add up."""
        for place, wall in enumerate(self.wall_ns):
            total = sum(values[place] for values in self.ledger_ns.values())
            assert total == wall, f"iterations {self.first[place]} to {self.last[place]} sum to {total} ns of {wall} ns"


def series(session: Session, snapshot: Snapshot, iterations: Sequence[IterationRow], points: int = POINTS) -> Series:
    """The iterations of a session, with neighbours merged into at most `points` points. What the last iteration did
    after the training is left out."""
    beyond = after_training(snapshot)
    operation_of = {node.id: node.operation for node in snapshot.nodes}
    parent_of = {node.id: node.parent for node in snapshot.nodes}
    groups = list(groups_of(iterations, points))
    gains = [session.gains(group[0], group[-1]) for group in groups]
    left_out = [sum(gain.ledger_ns for gain in gained if gain.node in beyond) for gained in gains]
    inside = [[gain for gain in gained if gain.node not in beyond] for gained in gains]
    columns = [_accounts(gained, operation_of, parent_of, session.cost) for gained in inside]
    names = sorted({name for ledger, _ in columns for name in ledger})
    operations = [name for name in names if name not in (RLPROF, UNATTRIBUTED)]
    return Series(
        first=tuple(group[0].first + 1 for group in groups),
        last=tuple(group[-1].last + 1 for group in groups),
        start_ns=tuple(group[0].start - session.info.origin for group in groups),
        wall_ns=tuple(sum(one.wall_ns for one in group) - ns for group, ns in zip(groups, left_out)),
        steps=tuple(sum(one.steps for one in group) for group in groups),
        episodes=tuple(sum(one.episodes for one in group) for group in groups),
        ledger_ns={name: tuple(ledger[name] for ledger, _ in columns) for name in names},
        calls={name: tuple(calls[name] for _, calls in columns) for name in operations},
    )


def in_training(
    session: Session, snapshot: Snapshot, iterations: Sequence[IterationRow], after_ns: int
) -> Sequence[IterationRow]:
    """Without the last iteration, if it goes on after the training: it would look like a slow one.

    `after_ns` is the time after the training. What is in the operation `after_training` or after the last iteration
    is in no point anyway.
    """
    if session.state is None or len(iterations) < 2:
        return iterations
    last = iterations[-1]
    found = after_training(snapshot)
    marked = sum(node.ledger_ns for node in snapshot.nodes if node.id in found)
    beyond = after_ns - max(marked, session.state.time - last.end)
    return iterations[:-1] if beyond > MOST_BEYOND * last.wall_ns else iterations


def after_training(snapshot: Snapshot) -> frozenset[int]:
    """The nodes of the operation `after_training`, and those below them."""
    found: set[int | None] = set()
    for node in snapshot.nodes:  # parents come first
        if node.operation == AFTER_TRAINING or node.parent in found:
            found.add(node.id)
    return frozenset(id for id in found if id is not None)


def groups_of(iterations: Sequence[IterationRow], points: int) -> Iterator[list[IterationRow]]:
    """Groups of neighbours with about equal numbers of iterations."""
    if not iterations:
        return
    size = max(1, -(-sum(one.last - one.first + 1 for one in iterations) // points))
    group: list[IterationRow] = []
    for one in iterations:
        group.append(one)
        if one.last - group[0].first + 1 >= size:
            yield group
            group = []
    if group:
        yield group


def _accounts(
    gains: Sequence[Gain], operation_of: dict[int, str | None], parent_of: dict[int, int | None], cost: SpanCost
) -> tuple[Counter[str], Counter[str]]:
    """Ledger time and calls by operation, without rlprof's cost, as in the snapshot."""
    around = calls_inside(gains, parent_of)
    ledger: Counter[str] = Counter({UNATTRIBUTED: 0, RLPROF: 0})
    calls: Counter[str] = Counter()
    for gain in gains:
        name = operation_of.get(gain.node) or UNATTRIBUTED
        own = int(max(0, gain.ledger_ns) * own_share(gain, around[gain.node], cost))
        ledger[RLPROF] += own
        ledger[name] += gain.ledger_ns - own
        calls[name] += gain.calls
    return ledger, calls


def calls_inside(gains: Sequence[Gain], parent_of: dict[int, int | None]) -> Counter[int]:
    """The number of calls directly below each node."""
    around: Counter[int] = Counter()
    for gain in gains:
        if (parent := parent_of.get(gain.node)) is not None:
            around[parent] += gain.calls
    return around


def own_share(gain: Gain, inside: int, cost: SpanCost) -> float:
    """Fraction of a node's time that rlprof itself took: 0 to 1."""
    spent = gain.calls * cost.inside_ns + inside * cost.outside_ns
    return min(1.0, spent / gain.self_ns) if gain.self_ns > 0 else 0.0

"""How did the accounts change over the iterations? At most a few hundred points; each sums to its wall time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rlprof.analysis.breakdown import RLPROF, UNATTRIBUTED
from rlprof.ledger.snapshot import Snapshot, SpanCost
from rlprof.session.reader import Gain, IterationRow, Session

POINTS = 300


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
    """The iterations of a session, with neighbours merged into at most `points` points."""
    operation_of = {node.id: node.operation for node in snapshot.nodes}
    parent_of = {node.id: node.parent for node in snapshot.nodes}
    groups = list(groups_of(iterations, points))
    columns = [_accounts(session.gains(group[0], group[-1]), operation_of, parent_of, session.cost) for group in groups]
    names = sorted({name for ledger, _ in columns for name in ledger})
    operations = [name for name in names if name not in (RLPROF, UNATTRIBUTED)]
    return Series(
        first=tuple(group[0].first + 1 for group in groups),
        last=tuple(group[-1].last + 1 for group in groups),
        start_ns=tuple(group[0].start - session.info.origin for group in groups),
        wall_ns=tuple(sum(one.wall_ns for one in group) for group in groups),
        steps=tuple(sum(one.steps for one in group) for group in groups),
        episodes=tuple(sum(one.episodes for one in group) for group in groups),
        ledger_ns={name: tuple(ledger[name] for ledger, _ in columns) for name in names},
        calls={name: tuple(calls[name] for _, calls in columns) for name in operations},
    )


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

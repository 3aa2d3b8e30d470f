"""Where did the training time go? One row per place in the call tree; the rows sum to the training time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rlprof.analysis.calltree import Place, cpu_of, merge
from rlprof.analysis.training import Outside, Training
from rlprof.ledger.sharing import apportion
from rlprof.ledger.snapshot import Lane, Snapshot

UNATTRIBUTED = "unattributed"
RLPROF = "rlprof"
_AS_IN_THE_TREE = (
    "operation", "category", "depth", "self_ns", "ledger_ns", "subtree_ledger_ns", "overlapped_ns", "cpu_ns",
    "subtree_cpu_ns",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One operation at one place of the call tree, over all lanes. Times are in ns, without rlprof's cost."""

    operation: str
    category: str
    """`unattributed` and `rlprof` for the two rows without a span."""
    depth: int
    calls: int
    wall_ns: int
    """With the rows below, summed over the lanes. With several lanes it may exceed the wall time of the breakdown."""
    self_ns: int
    ledger_ns: int
    """The driver's training time that this row itself accounts for."""
    subtree_ledger_ns: int
    share: float
    """Share of the training time including the rows below, in percent with one decimal. The top rows sum to 100.0."""
    cpu_ns: int | None
    """Thread CPU time within `self_ns`. None if it cannot be measured."""
    subtree_cpu_ns: int | None
    overlapped_ns: int = 0
    """The part of `self_ns` on other lanes while the driver was busy with something else."""
    mean_ns: float | None = None
    p50_ns: float | None = None
    p95_ns: float | None = None
    p99_ns: float | None = None
    uncertainty_ns: int = 0
    """How far the cost may be off. Only in the `rlprof` row."""
    elsewhere: str = ""
    """`process`, `thread` or `task` if no part of it ran on the driver's lanes."""


@dataclass(frozen=True, slots=True)
class Portion:
    """A part of the training time under one name."""

    name: str
    ledger_ns: int
    share: float


@dataclass(frozen=True, slots=True)
class Lanes:
    """Lanes that recorded a span."""

    by_kind: dict[str, int]
    concurrency: float
    """How many lanes worked inside spans at the same time, averaged over the wall time."""


@dataclass(frozen=True, slots=True)
class Breakdown:
    """The run, divided into its training time and what lies outside; the training time into rows and categories."""

    wall_ns: int
    """The whole run."""
    training_ns: int
    outside: tuple[Outside, ...]
    """Start-up and other parts of the run that are not training. With the training time they sum to the whole run."""
    iterations: int
    rows: tuple[Row, ...]
    """The call tree in reading order: the children of a row follow it, one level deeper, largest ledger time first. The
    last two rows are `unattributed` and `rlprof`."""
    categories: tuple[Portion, ...]
    """Largest first, then `unattributed` and `rlprof`."""
    largest: Portion
    """One operation at all its places, without what it called, or one of those two."""
    overlapped: dict[str, int]
    """Work of other lanes while the driver was busy with something else, in ns by operation, largest first."""
    lanes: Lanes
    open_spans: int
    cpu: str
    """How thread CPU time is read; `off` if it is not."""

    @property
    def top(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.depth == 0)

    def check(self) -> None:
        """Raise AssertionError if the parts do not add up."""
        for what, total in (
            ("rows", sum(row.ledger_ns for row in self.rows)),
            ("top rows", sum(row.subtree_ledger_ns for row in self.top)),
            ("categories", sum(category.ledger_ns for category in self.categories)),
        ):
            assert total == self.training_ns, f"{what} sum to {total} ns, training time is {self.training_ns} ns"
        whole = self.training_ns + sum(part.ns for part in self.outside)
        assert whole == self.wall_ns, f"training and outside sum to {whole} ns, wall time is {self.wall_ns} ns"


def breakdown(training: Training) -> Breakdown:
    """Divide the training time along the call tree."""
    snapshot = training.snapshot
    tops = merge(snapshot.net_nodes).children
    extra = [snapshot.unattributed_ns, snapshot.rlprof_ns]
    *shares, unattributed, rlprof = apportion(1000, [top.subtree_ledger_ns for top in tops] + extra)
    rows = _rows(tops, shares, snapshot)
    rows.append(_extra_row(UNATTRIBUTED, snapshot.unattributed_ns, unattributed, cpu_ns=_spanless_cpu(snapshot)))
    rows.append(_extra_row(RLPROF, snapshot.rlprof_ns, rlprof, uncertainty_ns=snapshot.rlprof_uncertainty_ns))
    overlapped: Counter[str] = Counter()
    for row in rows:
        overlapped[row.operation] += row.overlapped_ns
    return Breakdown(
        wall_ns=snapshot.wall_ns + sum(part.ns for part in training.outside),
        training_ns=snapshot.wall_ns,
        outside=training.outside,
        iterations=snapshot.iterations,
        rows=tuple(rows),
        categories=_categories(rows),
        largest=_largest(snapshot),
        overlapped={operation: ns for operation, ns in overlapped.most_common() if ns},
        lanes=_lanes(snapshot),
        open_spans=snapshot.open_spans,
        cpu=snapshot.cpu,
    )


def _rows(tops: Sequence[Place], tenths: Sequence[int], snapshot: Snapshot) -> list[Row]:
    """The tree in reading order. `tenths` are shares in tenths of a percent."""
    rows, wall_ns = [], snapshot.wall_ns
    pending = list(zip(tops, tenths))[::-1]
    while pending:
        place, share = pending.pop()
        rows.append(_row(place, share, snapshot.lanes))
        # Each share is rounded by itself: passing largest remainders down the levels would add up to wrong figures.
        # A row never has a larger share than its parent.
        for child in reversed(place.children):
            pending.append((child, min(share, round(1000 * child.subtree_ledger_ns / wall_ns) if wall_ns else 0)))
    return rows


def _row(place: Place, tenths: int, lanes: Sequence[Lane]) -> Row:
    durations = place.durations()
    used = [lanes[node.lane] for node in place.nodes]
    return Row(
        **{name: getattr(place, name) for name in _AS_IN_THE_TREE},
        calls=durations.calls,
        wall_ns=place.subtree_wall_ns,
        share=tenths / 10,
        mean_ns=durations.mean_ns,
        p50_ns=durations.quantile_ns(0.50),
        p95_ns=durations.quantile_ns(0.95),
        p99_ns=durations.quantile_ns(0.99),
        elsewhere="" if any(lane.on_driver for lane in used) else used[0].kind,
    )


def _extra_row(name: str, ns: int, tenths: int, cpu_ns: int | None = None, uncertainty_ns: int = 0) -> Row:
    times: dict[str, Any] = dict.fromkeys(("wall_ns", "self_ns", "ledger_ns", "subtree_ledger_ns"), ns)
    times |= dict.fromkeys(("cpu_ns", "subtree_cpu_ns"), cpu_ns)
    return Row(name, name, depth=0, calls=0, share=tenths / 10, uncertainty_ns=uncertainty_ns, **times)


def _spanless_cpu(snapshot: Snapshot) -> int | None:
    """CPU time of the driver outside of all spans."""
    roots = [node for node in snapshot.net_nodes if node.operation is None and snapshot.lanes[node.lane].on_driver]
    cpu = cpu_of(roots)
    return None if cpu is None else min(cpu, snapshot.unattributed_ns)


def _categories(rows: Sequence[Row]) -> tuple[Portion, ...]:
    *operations, unattributed, rlprof = rows
    totals: Counter[str] = Counter()
    for row in operations:
        totals[row.category] += row.ledger_ns
    found = sorted(totals.items(), key=lambda item: (-item[1], item[0]))
    # Apportioned without the two extra rows, which must not read 2.4 % in one table and 2.5 % in the next.
    tenths = sum(round(10 * row.share) for row in operations if row.depth == 0)
    shares = apportion(tenths, [ns for _, ns in found])
    portions = [Portion(name, ns, share / 10) for (name, ns), share in zip(found, shares)]
    portions += [Portion(extra.category, extra.ledger_ns, extra.share) for extra in (unattributed, rlprof)]
    return tuple(portions)


def _largest(snapshot: Snapshot) -> Portion:
    accounts = [(account.operation, account.ledger_ns) for account in snapshot.accounts[:1]]
    accounts += [(UNATTRIBUTED, snapshot.unattributed_ns), (RLPROF, snapshot.rlprof_ns)]
    name, ns = max(accounts, key=lambda account: account[1])
    return Portion(name, ns, round(100 * ns / snapshot.wall_ns, 1) if snapshot.wall_ns else 0.0)


def _lanes(snapshot: Snapshot) -> Lanes:
    spans = [node for node in snapshot.net_nodes if node.operation is not None]
    kinds = Counter(snapshot.lanes[lane].kind for lane in {node.lane for node in spans})
    # Waiting is not working. If rlprof's cost was taken out of a wait, that is not negative work either.
    working = sum(max(0, node.self_ns - node.waited_ns) for node in spans)
    return Lanes(dict(sorted(kinds.items())), working / snapshot.wall_ns if snapshot.wall_ns else 0.0)

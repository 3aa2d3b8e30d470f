"""Where did the wall time go? One row for each place an operation was called from; the rows sum to the wall time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rlprof.ledger.snapshot import Measures, Node, Snapshot

UNATTRIBUTED = "unattributed"
RLPROF = "rlprof"


@dataclass(frozen=True, slots=True)
class Row:
    """One operation at one place of the call tree, over all lanes. Times are ns, rlprof's cost taken out."""

    operation: str
    category: str
    """`unattributed` and `rlprof` for the two rows that no span stands behind."""
    depth: int
    calls: int
    wall_ns: int
    """Inclusive, summed over the lanes: with several lanes it may exceed the breakdown's."""
    self_ns: int
    ledger_ns: int
    """The driver's wall time that this row itself is accountable for."""
    subtree_ledger_ns: int
    """The same with the rows below it."""
    share: float
    """Of the wall time, the rows below included: percent with one decimal. The top rows sum to 100.0."""
    overlapped_ns: int
    cpu_ns: int | None
    """Of self: thread CPU time. None where it cannot be measured."""
    subtree_cpu_ns: int | None
    mean_ns: float | None
    p50_ns: float | None
    p95_ns: float | None
    p99_ns: float | None
    uncertainty_ns: int = 0
    """Of rlprof's own row: how far its cost may be off."""


@dataclass(frozen=True, slots=True)
class Portion:
    """A part of the wall time under one name."""

    name: str
    ledger_ns: int
    share: float


@dataclass(frozen=True, slots=True)
class Lanes:
    """The lanes that recorded a span."""

    by_kind: dict[str, int]
    concurrency: float
    """How many of them worked inside spans at the same time, on average over the wall time."""


@dataclass(frozen=True, slots=True)
class Breakdown:
    """The wall time, taken apart."""

    wall_ns: int
    iterations: int
    rows: tuple[Row, ...]
    """The call tree in reading order: a row's children follow it, one deeper, the largest ledger time first. The last
    two are `unattributed` and `rlprof`."""
    categories: tuple[Portion, ...]
    """The largest first; then `unattributed` and `rlprof`."""
    largest: Portion
    """The largest account: one operation at all its places, without what it called; or one of those two."""
    overlapped: dict[str, int]
    """Work of other lanes while the driver was busy with something else, in ns by operation, the largest first."""
    lanes: Lanes
    open_spans: int
    cpu: str
    """How thread CPU time is read; `off` where it is not."""

    @property
    def top(self) -> tuple[Row, ...]:
        """The rows that no other contains."""
        return tuple(row for row in self.rows if row.depth == 0)

    @property
    def iteration_ns(self) -> float | None:
        """The mean wall time of an iteration; None without one."""
        return self.wall_ns / self.iterations if self.iterations else None

    def check(self) -> None:
        """Raise AssertionError where the parts do not add up: they always must."""
        for what, total in (
            ("rows", sum(row.ledger_ns for row in self.rows)),
            ("top rows", sum(row.subtree_ledger_ns for row in self.top)),
            ("categories", sum(category.ledger_ns for category in self.categories)),
        ):
            assert total == self.wall_ns, f"{what} sum to {total} ns, wall time is {self.wall_ns} ns"


@dataclass(slots=True)
class _Place:
    """A row in the making."""

    nodes: list[Node] = field(default_factory=list)
    children: dict[str, _Place] = field(default_factory=dict)
    depth: int = -1
    wall: int = 0
    ledger: int = 0
    cpu: int = 0
    tenths: int = 0
    """Of a percent of the wall time."""


def breakdown(snapshot: Snapshot) -> Breakdown:
    """Merge the lanes' call trees by the path of operations, and take the wall time apart along it."""
    root, places = _places(snapshot.net_nodes)
    tops = _sorted(root)
    extra = [snapshot.unattributed_ns, snapshot.rlprof_ns]
    *shares, unattributed, rlprof = apportion(1000, [top.ledger for top in tops] + extra)
    for top, tenths in zip(tops, shares):
        top.tenths = tenths
    rows = []
    pending = tops[::-1]
    while pending:  # not by recursion: a call tree may be deeper than Python's stack
        place = pending.pop()
        children = _sorted(place)
        own = sum(node.ledger_ns for node in place.nodes)
        # A row's share is divided among itself and its children, so every level of the tree adds up, not only the top.
        _, *shares = apportion(place.tenths, [own, *(child.ledger for child in children)])
        for child, tenths in zip(children, shares):
            child.tenths = tenths
        rows.append(_row(place))
        pending += children[::-1]
    rows.append(_extra_row(UNATTRIBUTED, snapshot.unattributed_ns, unattributed, cpu_ns=_idle_cpu(snapshot)))
    rows.append(_extra_row(RLPROF, snapshot.rlprof_ns, rlprof, uncertainty_ns=snapshot.rlprof_uncertainty_ns))
    return Breakdown(
        wall_ns=snapshot.wall_ns,
        iterations=snapshot.iterations,
        rows=tuple(rows),
        categories=_categories(rows),
        largest=_largest(snapshot),
        overlapped=_overlapped(places),
        lanes=_lanes(snapshot),
        open_spans=snapshot.open_spans,
        cpu=snapshot.cpu,
    )


def apportion(total: int, parts: Sequence[int]) -> list[int]:
    """Divide a total in proportion to the parts, in whole numbers that sum to it: the largest remainders round up."""
    whole = sum(parts)
    if whole == 0:
        return [0] * len(parts)
    shares = [total * part // whole for part in parts]
    by_remainder = sorted(range(len(parts)), key=lambda i: -(total * parts[i] % whole))
    for i in by_remainder[: total - sum(shares)]:
        shares[i] += 1
    return shares


def _places(nodes: Iterable[Node]) -> tuple[_Place, list[_Place]]:
    """The merged tree: its root, which stands for no open span, and every place below, parents first."""
    root = _Place()
    places: list[_Place] = []
    place_of: dict[int, _Place] = {}
    for node in nodes:
        if node.operation is None or node.parent is None:
            place_of[node.id] = root
            continue
        # A span that is open since this very nanosecond is not among the nodes; what it called may be.
        parent = place_of.get(node.parent, root)
        place = parent.children.get(node.operation)
        if place is None:
            place = parent.children[node.operation] = _Place(depth=parent.depth + 1)
            places.append(place)
        place.nodes.append(node)
        place_of[node.id] = place
    for place in reversed(places):
        for node in place.nodes:
            place.wall += node.self_ns
            place.ledger += node.ledger_ns
            place.cpu += _cpu(node) or 0
        for child in place.children.values():
            place.wall += child.wall
            place.ledger += child.ledger
            place.cpu += child.cpu
    return root, places


def _sorted(place: _Place) -> list[_Place]:
    by_name = sorted(place.children.items(), key=lambda item: (-item[1].ledger, -item[1].wall, item[0]))
    return [child for _, child in by_name]


def _cpu(node: Node) -> int | None:
    """rlprof's cost is in the CPU time but no longer in the self time: never more CPU than there was time."""
    return None if node.cpu_ns is None else min(node.cpu_ns, node.self_ns)


def _row(place: _Place) -> Row:
    nodes = place.nodes
    called = [node for node in nodes if node.calls]
    histogram: Counter[int] = Counter()
    for node in nodes:
        histogram.update(node.histogram)
    durations = Measures(
        calls=sum(node.calls for node in nodes),
        busy_ns=sum(node.busy_ns for node in nodes),
        min_ns=min((node.min_ns for node in called), default=0),
        max_ns=max((node.max_ns for node in called), default=0),
        histogram=histogram,
    )
    cpu = [used for node in nodes if (used := _cpu(node)) is not None]
    return Row(
        operation=nodes[0].operation or "",
        category=nodes[0].category,
        depth=place.depth,
        calls=durations.calls,
        wall_ns=place.wall,
        self_ns=sum(node.self_ns for node in nodes),
        ledger_ns=sum(node.ledger_ns for node in nodes),
        subtree_ledger_ns=place.ledger,
        share=place.tenths / 10,
        overlapped_ns=sum(node.overlapped_ns for node in nodes),
        cpu_ns=sum(cpu) if cpu else None,
        subtree_cpu_ns=place.cpu if cpu else None,
        mean_ns=durations.mean_ns,
        p50_ns=durations.quantile_ns(0.50),
        p95_ns=durations.quantile_ns(0.95),
        p99_ns=durations.quantile_ns(0.99),
    )


def _extra_row(name: str, ns: int, tenths: int, cpu_ns: int | None = None, uncertainty_ns: int = 0) -> Row:
    return Row(
        operation=name,
        category=name,
        depth=0,
        calls=0,
        wall_ns=ns,
        self_ns=ns,
        ledger_ns=ns,
        subtree_ledger_ns=ns,
        share=tenths / 10,
        overlapped_ns=0,
        cpu_ns=cpu_ns,
        subtree_cpu_ns=cpu_ns,
        mean_ns=None,
        p50_ns=None,
        p95_ns=None,
        p99_ns=None,
        uncertainty_ns=uncertainty_ns,
    )


def _idle_cpu(snapshot: Snapshot) -> int | None:
    """CPU time of the driver with no span open. None where it cannot be measured."""
    roots = [node for node in snapshot.net_nodes if node.operation is None and snapshot.lanes[node.lane].on_driver]
    known = [cpu for root in roots if (cpu := _cpu(root)) is not None]
    return min(sum(known), snapshot.unattributed_ns) if known else None


def _categories(rows: Sequence[Row]) -> tuple[Portion, ...]:
    *operations, unattributed, rlprof = rows
    totals: Counter[str] = Counter()
    for row in operations:
        totals[row.category] += row.ledger_ns
    found = sorted(totals.items(), key=lambda item: (-item[1], item[0]))
    # What the tree leaves them: the two extra rows must not read 2.4 % in one table and 2.5 % in the next.
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


def _overlapped(places: Iterable[_Place]) -> dict[str, int]:
    totals: Counter[str] = Counter()
    for place in places:
        for node in place.nodes:
            totals[node.operation or ""] += node.overlapped_ns
    return {name: ns for name, ns in totals.most_common() if ns}


def _lanes(snapshot: Snapshot) -> Lanes:
    spans = [node for node in snapshot.net_nodes if node.operation is not None]
    used = {node.lane for node in spans}
    # Waiting is not working. rlprof's cost may have been taken out of a wait: then it is not negative work either.
    working = sum(max(0, node.self_ns - node.waited_ns) for node in spans)
    return Lanes(
        by_kind=dict(Counter(snapshot.lanes[lane].kind for lane in sorted(used))),
        concurrency=working / snapshot.wall_ns if snapshot.wall_ns else 0.0,
    )

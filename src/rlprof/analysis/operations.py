"""What did each operation cost? One entry per operation, over all lanes and places."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from rlprof.ledger.snapshot import Account, Node, Snapshot

MOST_LANES = 64
_AS_IN_THE_ACCOUNT = (
    "operation", "category", "calls", "busy_ns", "self_ns", "ledger_ns", "overlapped_ns", "waited_ns", "mean_ns",
    "cpu_ns", "memory_peak", "memory_rise", "device_peak", "device_rise", "device_ns", "device_calls", "histogram",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class OnLane:
    """An operation on one lane."""

    lane: str
    kind: str
    calls: int
    busy_ns: int
    self_ns: int
    ledger_ns: int
    on_driver: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. Times are in ns, sizes in bytes; None means not measured."""

    operation: str
    category: str
    calls: int
    busy_ns: int
    """The durations of all ended calls, including what they called. On several lanes it may exceed the wall time."""
    self_ns: int
    """Time as the innermost span of its lane, without rlprof's cost."""
    ledger_ns: int
    """The training time that it accounts for. With `unattributed` and `rlprof` these sum to the training time."""
    share: float
    """`ledger_ns` in percent of the training time."""
    overlapped_ns: int
    """Work while the driver was busy with something else."""
    waited_ns: int
    """The part of `self_ns` spent waiting for others."""
    idle_ns: int
    """The part of `ledger_ns` in which the driver waited here while no lane worked."""
    mean_ns: float | None
    p50_ns: float | None
    p95_ns: float | None
    p99_ns: float | None
    min_ns: int | None
    max_ns: int | None
    cpu_ns: int | None
    """CPU time of its threads within `self_ns`."""
    cpu_percent: float | None
    """`cpu_ns` in percent of `self_ns`."""
    memory_peak: int | None
    """Peak resident memory of the process during a call."""
    memory_rise: int | None
    """The highest rise of that peak above the start of a call: the memory that the operation needed."""
    device_peak: int | None
    device_rise: int | None
    device_ns: int
    device_calls: int
    """Calls that the device has finished; `device_ns` is their time on the device."""
    histogram: dict[int, int]
    """Calls by duration: bucket i covers [2^(i/32), 2^((i+1)/32)) ns."""
    lanes: tuple[OnLane, ...]
    """Busiest first, at most 64."""


def operations(snapshot: Snapshot) -> tuple[Operation, ...]:
    """All operations, largest ledger time first."""
    on_lanes: defaultdict[str, list[Node]] = defaultdict(list)
    for node in snapshot.net_nodes:
        if node.operation is not None:
            on_lanes[node.operation].append(node)
    return tuple(_operation(account, on_lanes[account.operation], snapshot) for account in snapshot.accounts)


def _operation(account: Account, nodes: list[Node], snapshot: Snapshot) -> Operation:
    cpu = account.cpu_ns
    return Operation(
        **{name: getattr(account, name) for name in _AS_IN_THE_ACCOUNT},
        share=100 * account.ledger_ns / snapshot.wall_ns if snapshot.wall_ns else 0.0,
        idle_ns=sum(min(node.ledger_ns, node.waited_ns) for node in nodes if snapshot.lanes[node.lane].on_driver),
        p50_ns=account.quantile_ns(0.50),
        p95_ns=account.quantile_ns(0.95),
        p99_ns=account.quantile_ns(0.99),
        min_ns=account.min_ns if account.calls else None,
        max_ns=account.max_ns if account.calls else None,
        cpu_percent=min(100.0, 100 * cpu / account.self_ns) if cpu is not None and account.self_ns else None,
        lanes=_lanes(nodes, snapshot),
    )


def _lanes(nodes: list[Node], snapshot: Snapshot) -> tuple[OnLane, ...]:
    by_lane: defaultdict[int, list[Node]] = defaultdict(list)
    for node in nodes:
        by_lane[node.lane].append(node)
    found = [
        OnLane(
            lane=snapshot.lanes[id].name,
            kind=snapshot.lanes[id].kind,
            calls=sum(node.calls for node in group),
            busy_ns=sum(node.busy_ns for node in group),
            self_ns=sum(node.self_ns for node in group),
            ledger_ns=sum(node.ledger_ns for node in group),
            on_driver=snapshot.lanes[id].on_driver,
        )
        for id, group in by_lane.items()
    ]
    return tuple(sorted(found, key=lambda on: -on.self_ns)[:MOST_LANES])

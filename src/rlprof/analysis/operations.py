"""What did each operation cost? One entry an operation, over all lanes and places; their ledger times are accounts."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from rlprof.ledger.snapshot import Account, Node, Snapshot

MOST_LANES = 64


@dataclass(frozen=True, slots=True)
class OnLane:
    """An operation on one lane."""

    lane: str
    kind: str
    calls: int
    busy_ns: int
    """The durations of the calls that have ended."""
    self_ns: int
    ledger_ns: int
    on_driver: bool = False
    """It runs on the thread whose progress is the training's."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. Times are ns, sizes bytes; None where nothing was measured."""

    operation: str
    category: str
    calls: int
    busy_ns: int
    """The durations of all calls that have ended, with what they called: on several lanes it may exceed the wall."""
    self_ns: int
    """Innermost on its lane, rlprof's cost taken out."""
    ledger_ns: int
    """The wall time this operation itself is accountable for. With `unattributed` and `rlprof`, these sum to the wall
    time."""
    share: float
    """That, in percent of the wall time."""
    overlapped_ns: int
    """Worked while the driver was busy with something else."""
    waited_ns: int
    """Of self: waiting for others."""
    idle_ns: int
    """Of the ledger time: the driver waited here, and nobody was at work."""
    mean_ns: float | None
    p50_ns: float | None
    p95_ns: float | None
    p99_ns: float | None
    min_ns: int | None
    max_ns: int | None
    cpu_ns: int | None
    """Of self: CPU time of the threads it ran on."""
    cpu_percent: float | None
    """Of self: how much of it was spent computing."""
    memory_peak: int | None
    """The process's resident peak inside."""
    memory_rise: int | None
    """The most that peak stood above a call's start: what the operation needed."""
    device_peak: int | None
    device_rise: int | None
    device_ns: int
    device_calls: int
    """Calls the device has finished; `device_ns` is their time on it."""
    histogram: dict[int, int]
    """Calls by duration: bucket i covers [2^(i/32), 2^((i+1)/32)) ns."""
    lanes: tuple[OnLane, ...]
    """The busiest first, at most 64."""


def operations(snapshot: Snapshot) -> tuple[Operation, ...]:
    """All operations, the largest ledger time first."""
    on_lanes: defaultdict[str, list[Node]] = defaultdict(list)
    for node in snapshot.net_nodes:
        if node.operation is not None:
            on_lanes[node.operation].append(node)
    return tuple(_operation(account, on_lanes[account.operation], snapshot) for account in snapshot.accounts)


def _operation(account: Account, nodes: list[Node], snapshot: Snapshot) -> Operation:
    cpu = account.cpu_ns
    return Operation(
        operation=account.operation,
        category=account.category,
        calls=account.calls,
        busy_ns=account.busy_ns,
        self_ns=account.self_ns,
        ledger_ns=account.ledger_ns,
        share=100 * account.ledger_ns / snapshot.wall_ns if snapshot.wall_ns else 0.0,
        overlapped_ns=account.overlapped_ns,
        waited_ns=account.waited_ns,
        idle_ns=sum(min(node.ledger_ns, node.waited_ns) for node in nodes if snapshot.lanes[node.lane].on_driver),
        mean_ns=account.mean_ns,
        p50_ns=account.quantile_ns(0.50),
        p95_ns=account.quantile_ns(0.95),
        p99_ns=account.quantile_ns(0.99),
        min_ns=account.min_ns if account.calls else None,
        max_ns=account.max_ns if account.calls else None,
        cpu_ns=cpu,
        cpu_percent=min(100.0, 100 * cpu / account.self_ns) if cpu is not None and account.self_ns else None,
        memory_peak=account.memory_peak,
        memory_rise=account.memory_rise,
        device_peak=account.device_peak,
        device_rise=account.device_rise,
        device_ns=account.device_ns,
        device_calls=account.device_calls,
        histogram=account.histogram,
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

"""The records of a ledger at one moment: lanes, their call trees, and the accounts, which sum to the wall time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from rlprof.ledger.histogram import quantile, unpack
from rlprof.ledger.rows import NodeRow

LEAST_UNCERTAINTY = 0.4
"""Least uncertainty, as a fraction of a span's cost. A shared machine runs at changing speed, and a span among real
work finds colder caches than one in a loop: fresh processes measured 74 to 119 ns per span, and really paid 81 to
124."""

TIMED_UNCERTAINTY = 0.75
"""Fraction of the time measured inside rlprof by which its real cost may differ. rlprof also evicts the training's data
from the caches, which no clock sees: runs of benchmarks/own_cost.py claimed 14 to 26 us per step and cost 1.2 to
1.6 times as much."""


@dataclass(frozen=True, slots=True)
class SpanCost:
    """Cost of one empty span in ns: between its two clock readings, and around them."""

    inside_ns: float = 0.0
    outside_ns: float = 0.0
    uncertainty_ns: float = 0.0
    """Half the range of repeated measurements of inside + outside."""

    @classmethod
    def over(cls, measured: Sequence[SpanCost]) -> SpanCost:
        """The mean of several, with an uncertainty that reaches over all of them."""
        if not measured:
            return cls()
        highest = max(cost.inside_ns + cost.outside_ns + cost.uncertainty_ns for cost in measured)
        lowest = min(cost.inside_ns + cost.outside_ns - cost.uncertainty_ns for cost in measured)
        inside = sum(cost.inside_ns for cost in measured) / len(measured)
        outside = sum(cost.outside_ns for cost in measured) / len(measured)
        return cls(inside, outside, max((highest - lowest) / 2, LEAST_UNCERTAINTY * (inside + outside)))


@dataclass(frozen=True, slots=True)
class Lane:
    """A line of execution with a call tree of its own: a thread, an asyncio task or a worker process."""

    id: int
    kind: str
    name: str
    on_driver: bool
    """It runs on the thread whose progress is the training's."""
    alive: bool
    uses: int
    """Threads or tasks that have run on it, one after the other."""
    node: int = 0
    """Id of the node that was innermost at this moment: the root of its call tree if no span was open."""
    since: int = 0
    """Start of that span by the ledger's clock; without an open span, the end of the last one."""
    waits: bool = False
    """That span waits for others, or the task is suspended."""


@dataclass(frozen=True, slots=True)
class Measures:
    """The figures that a node of a call tree and an account have in common. Times are ns, sizes bytes."""

    calls: int = 0
    """Spans that have ended."""
    busy_ns: int = 0
    """Their durations."""
    self_ns: int = 0
    """Innermost on its lane, open spans included."""
    ledger_ns: int = 0
    """The driver's wall time that this is accountable for. Over all accounts it sums to the wall time."""
    overlapped_ns: int = 0
    """Worked while the driver was busy with something else."""
    waited_ns: int = 0
    """Part of self: waiting for others, or suspended."""
    cpu_ns: int | None = 0
    """Part of self: thread CPU time. None where it cannot be measured."""
    min_ns: int = 0
    max_ns: int = 0
    memory_peak: int | None = None
    """The process's resident peak inside, where tracked."""
    memory_rise: int | None = None
    """The most that peak stood above the span's start."""
    device_peak: int | None = None
    device_rise: int | None = None
    device_ns: int = 0
    """Time on the device of the `device_calls` spans that it has finished."""
    device_calls: int = 0
    histogram: dict[int, int] = field(default_factory=dict)
    """Ended spans by duration: see rlprof.ledger.histogram."""

    def quantile_ns(self, q: float) -> float | None:
        """A quantile of the durations, within 1.1 % and never outside min and max; None without a call."""
        estimate = quantile(self.histogram, q)
        return None if estimate is None else min(max(estimate, self.min_ns), self.max_ns)

    @property
    def mean_ns(self) -> float | None:
        return self.busy_ns / self.calls if self.calls else None


@dataclass(frozen=True, slots=True)
class Node(Measures):
    """One operation at one place of a lane's call tree. A lane's root has no operation: nothing was open there."""

    id: int = 0
    parent: int | None = None
    lane: int = 0
    operation: str | None = None
    category: str = "other"
    own_cost_ns: int = 0
    """Part of self: CPU time of rlprof's own work, where it was timed rather than calibrated."""
    wall_ns: int = 0
    """Inclusive: self and everything below."""


@dataclass(frozen=True, slots=True)
class Account(Measures):
    """One operation, over all lanes and all places it was called from."""

    operation: str = ""
    category: str = "other"
    wall_ns: int = 0
    """Inclusive; recursion counts once."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A ledger at one moment."""

    wall_ns: int
    """Time since recording began, pauses left out."""
    accounts: list[Account]
    """By operation, the largest ledger time first, rlprof's own cost taken out."""
    unattributed_ns: int
    """The driver's time with no span open."""
    rlprof_ns: int
    """rlprof's own cost on the driver's time."""
    rlprof_uncertainty_ns: int
    nodes: list[Node]
    """The call trees as measured, rlprof's cost included."""
    net_nodes: list[Node]
    """The same with rlprof's cost taken out, as in the accounts."""
    lanes: list[Lane]
    iterations: int
    iteration_sum_ns: int
    """Sum of the durations of ended iterations, without stops of the process."""
    iteration_min_ns: int
    iteration_max_ns: int
    iteration_histogram: dict[int, int]
    """Ended iterations by duration: see rlprof.ledger.histogram."""
    steps: int
    """Environment steps counted: see `Profiler.add_steps`."""
    episodes: int
    open_spans: int
    clock: str
    clock_drift_ns: int
    """Drift of the ledger's clock from the system's."""
    cpu: str
    """How thread CPU time is read; `off` if it is not."""
    process_peak: int
    device_pending: int
    """Device spans whose events have not passed yet."""
    device_lost: int

    def account(self, operation: str) -> Account:
        """One operation's account; an empty one if it was never recorded."""
        for account in self.accounts:
            if account.operation == operation:
                return account
        return Account(operation=operation)

    def only(self, net_nodes: list[Node]) -> Snapshot:
        """The same with other net nodes, and the accounts and the wall time that follow from them."""
        unattributed = sum(node.ledger_ns for node in net_nodes if node.operation is None)
        accounts = _accounts(net_nodes)
        wall = sum(account.ledger_ns for account in accounts) + unattributed + self.rlprof_ns
        return replace(self, wall_ns=wall, accounts=accounts, unattributed_ns=unattributed, net_nodes=net_nodes)

    def check(self) -> None:
        """Raise AssertionError if the account does not add up."""
        total = sum(account.ledger_ns for account in self.accounts) + self.unattributed_ns + self.rlprof_ns
        assert total == self.wall_ns, f"accounts sum to {total} ns, wall time is {self.wall_ns} ns"
        for node in self.nodes:
            assert node.self_ns >= 0, f"negative self time: {node}"
            assert node.ledger_ns >= 0, f"negative ledger time: {node}"


def build_snapshot(raw: dict[str, Any], cost: SpanCost) -> Snapshot:
    """Name what a core reports, and put the accounts together."""
    lanes = [Lane(**row._asdict() | {"id": place}) for place, row in enumerate(raw["lanes"])]
    place_of = {row.id: place for place, row in enumerate(raw["lanes"])}  # ids from other processes are not consecutive
    operations = {id: (distinct(name), category) for id, name, category in raw["operations"]}
    nodes = list(_nodes(raw["nodes"], operations, place_of, cpu_known=raw["cpu"] != "off"))
    net, own = _net_of_cost(nodes, cost, lanes)
    roots = [node for node in net if node.operation is None]
    driven = [node for node in nodes if lanes[node.lane].on_driver]
    unsure = sum(node.calls for node in driven) * cost.uncertainty_ns
    unsure += TIMED_UNCERTAINTY * sum(node.own_cost_ns for node in driven)
    return Snapshot(
        wall_ns=raw["wall"],
        accounts=_accounts(net),
        unattributed_ns=sum(root.ledger_ns for root in roots),
        rlprof_ns=own,
        rlprof_uncertainty_ns=round(unsure),
        nodes=_used(nodes),
        net_nodes=_used(net),
        lanes=lanes,
        iteration_sum_ns=raw["iteration_sum"],
        iteration_min_ns=raw["iteration_min"],
        iteration_max_ns=raw["iteration_max"],
        iteration_histogram=unpack(raw["iteration_histogram"]),
        open_spans=raw["open"],
        clock_drift_ns=raw["clock_drift"],
        **{name: raw[name] for name in _SAME_IN_RAW},
    )


_SAME_IN_RAW = ("iterations", "steps", "episodes", "clock", "cpu", "process_peak", "device_pending", "device_lost")


def distinct(name: str) -> str:
    """A name that differs from the two accounts without spans."""
    return f"{name} (a span)" if name in ("unattributed", "rlprof") else name


def _inclusive(places: Sequence[tuple[int, int | None, int]]) -> dict[int, int]:
    """Inclusive times by id, of (id, parent, self time). Parents come first, so one walk from the end is enough."""
    wall = {id: own for id, _, own in places}
    for id, parent, _ in reversed(places):
        if parent is not None:
            wall[parent] += wall[id]
    return wall


def _nodes(
    rows: Sequence[NodeRow], operations: dict[int, tuple[str, str]], place_of: dict[int, int], cpu_known: bool
) -> Iterator[Node]:
    wall = _inclusive([(row.id, None if row.parent < 0 else row.parent, row.self) for row in rows])
    for row in rows:
        name, category = operations.get(row.operation, (None, "other"))
        yield Node(
            id=row.id,
            parent=None if row.parent < 0 else row.parent,
            lane=place_of[row.lane],
            operation=name,
            category=category,
            calls=row.calls,
            busy_ns=row.busy,
            self_ns=row.self,
            ledger_ns=row.ledger,
            overlapped_ns=row.overlapped,
            waited_ns=row.waited,
            # Two clocks read one after the other differ by a little: never more CPU than there was time.
            cpu_ns=min(row.self, max(0, row.self - row.off_cpu)) if cpu_known else None,
            min_ns=row.min,
            max_ns=row.max,
            **{name: size if (size := getattr(row, name)) >= 0 else None for name in _PEAKS},
            device_ns=row.device_ns,
            device_calls=row.device_calls,
            histogram=unpack(row.histogram),
            own_cost_ns=row.cost,
            wall_ns=wall[row.id],
        )


def _used(nodes: list[Node]) -> list[Node]:
    """The nodes at or below which something was recorded since the last reset."""
    used: set[int] = set()
    for node in reversed(nodes):
        if node.operation is None or node.wall_ns or node.calls or node.id in used:
            used.add(node.id)
            if node.parent is not None:
                used.add(node.parent)
    return [node for node in nodes if node.id in used]


def _net_of_cost(nodes: list[Node], cost: SpanCost, lanes: list[Lane]) -> tuple[list[Node], int]:
    """Take rlprof's own cost out. Returns the nodes, and how much of the cost was the driver's time.

    The cost is CPU time. A span's inside cost is in its own self time, its outside cost in its parent's. On the
    driver's thread all of it is the driver's time, even if most of a node's self time is not, as in a suspended task.
    On other threads, and in waits, whose time is given to others, it is taken from the ledger time in proportion.
    """
    around: Counter[int] = Counter()
    for node in nodes:
        if node.parent is not None:
            around[node.parent] += node.calls
    taken: dict[int, int] = {}
    for node in nodes:
        cost_ns = node.calls * cost.inside_ns + around[node.id] * cost.outside_ns + node.own_cost_ns
        taken[node.id] = min(node.self_ns, round(cost_ns))
    wall = _inclusive([(node.id, node.parent, node.self_ns - taken[node.id]) for node in nodes])
    taken_from_ledger = 0
    net = []
    for node in nodes:
        own = taken[node.id]
        lane = lanes[node.lane]
        if lane.on_driver and (lane.kind == "task" or not node.waited_ns):
            share = max(0, min(own, node.ledger_ns))
        else:  # start-up has more ledger time than self time: never take more than its own cost
            share = min(own, node.ledger_ns * own // node.self_ns) if node.self_ns else 0
        taken_from_ledger += share
        net.append(
            replace(
                node,
                self_ns=node.self_ns - own,
                ledger_ns=node.ledger_ns - share,
                cpu_ns=None if node.cpu_ns is None else max(0, node.cpu_ns - own),
                waited_ns=min(node.waited_ns, node.self_ns - own),
                wall_ns=wall[node.id],
            )
        )
    return net, taken_from_ledger


def _accounts(nodes: list[Node]) -> list[Account]:
    nested = _inside_themselves(nodes)
    groups: defaultdict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        if node.operation is not None:
            groups[node.operation].append(node)
    accounts = [_account(operation, group, nested) for operation, group in groups.items()]
    used = [account for account in accounts if account.calls or account.wall_ns]
    return sorted(used, key=lambda account: (-account.ledger_ns, -account.self_ns, account.operation))


def _account(operation: str, nodes: list[Node], nested: set[int]) -> Account:
    if len(nodes) == 1:  # the usual case, and quicker
        (node,) = nodes
        figures = {name: getattr(node, name) for name in _MEASURES}
        if not node.calls:
            figures |= {"min_ns": 0, "max_ns": 0}
        return Account(operation=operation, category=node.category, wall_ns=node.wall_ns, **figures)
    histogram: Counter[int] = Counter()
    for node in nodes:
        histogram.update(node.histogram)
    cpu = [node.cpu_ns for node in nodes if node.cpu_ns is not None]
    called = [node for node in nodes if node.calls]
    sums = {name: sum(getattr(node, name) for node in nodes) for name in _SUMS}
    sizes = {name: [size for node in nodes if (size := getattr(node, name)) is not None] for name in _PEAKS}
    peaks: dict[str, Any] = {name: max(known, default=None) for name, known in sizes.items()}
    return Account(
        operation=operation,
        category=nodes[0].category,
        cpu_ns=sum(cpu) if cpu else None,
        min_ns=min((node.min_ns for node in called), default=0),
        max_ns=max((node.max_ns for node in called), default=0),
        histogram=dict(histogram),
        wall_ns=sum(node.wall_ns for node in nodes if node.id not in nested),
        **sums,
        **peaks,
    )


_MEASURES = tuple(measure.name for measure in fields(Measures))
_SUMS = ("calls", "busy_ns", "self_ns", "ledger_ns", "overlapped_ns", "waited_ns", "device_ns", "device_calls")
_PEAKS = ("memory_peak", "memory_rise", "device_peak", "device_rise")


def _inside_themselves(nodes: list[Node]) -> set[int]:
    """Nodes inside a node of the same operation, whose inclusive time has theirs already.

    One walk over the trees. Looking at all nodes above each node would take the square of the depth.
    """
    below: defaultdict[int | None, list[Node]] = defaultdict(list)
    for node in nodes:
        below[node.parent].append(node)
    nested: set[int] = set()
    open_spans: Counter[str | None] = Counter()
    pending: list[tuple[Node, bool]] = [(root, False) for root in below[None]]
    while pending:
        node, left = pending.pop()
        if left:
            open_spans[node.operation] -= 1
            continue
        if open_spans[node.operation]:
            nested.add(node.id)
        open_spans[node.operation] += 1
        pending.append((node, True))
        pending += [(child, False) for child in below.get(node.id, ())]
    return nested

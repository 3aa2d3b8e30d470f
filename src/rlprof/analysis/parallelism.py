"""How well were the cores used? Capacity, efficiency as load balance times communication, and concurrency."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

from rlprof.analysis.calltree import cpu_of
from rlprof.analysis.resources import Resources
from rlprof.ledger.sharing import apportion
from rlprof.ledger.snapshot import Snapshot

OUTSIDE = "outside spans"
CHILDREN = "child processes"
IDLE = "idle or other programs"
"""Capacity that this training did not use."""
MOST_LANES = 32
TOLERANCE = 0.02
"""Fraction of the capacity by which CPU times may exceed it, because two clocks are not read at once."""


@dataclass(frozen=True, slots=True)
class Worker:
    """One lane that recorded spans."""

    lane: str
    kind: str
    useful_ns: int
    """Time inside spans, not waiting."""
    share: float
    """`useful_ns` in percent of the wall time."""


@dataclass(frozen=True, slots=True)
class Concurrency:
    """How many calls of an operation were open at the same time, averaged over the wall time."""

    operation: str
    mean: float


@dataclass(frozen=True, slots=True)
class Capacity:
    """CPU time used, as a part of what the cores could provide."""

    name: str
    """A category, `outside spans`, `child processes` or `idle or other programs`."""
    cpu_ns: int
    share: float
    """Percent of wall time x cores with one decimal. All shares sum to 100.0."""


@dataclass(frozen=True, slots=True)
class Parallelism:
    """Use of cores and lanes."""

    cores: int
    capacity: tuple[Capacity, ...] | None
    """Largest category first, then the other three. None without CPU times, or if they do not fit the training time."""
    workers: tuple[Worker, ...]
    """Busiest first, at most 32."""
    lanes: int
    efficiency: float
    """Useful time as a fraction of wall time x lanes, which is load balance x communication efficiency. All 0 to 1."""
    load_balance: float
    """Mean useful time divided by the largest. Below 1, some lanes had less to do than others."""
    communication_efficiency: float
    """Largest useful time divided by wall time. Below 1, even the busiest lane waited."""
    concurrency: tuple[Concurrency, ...]
    """Operations on several lanes, most concurrent first."""


def parallelism(snapshot: Snapshot, resources: Resources, cores: int) -> Parallelism:
    useful: Counter[int] = Counter()
    lanes_of: defaultdict[str, set[int]] = defaultdict(set)
    for node in snapshot.net_nodes:
        if node.operation is not None:
            useful[node.lane] += max(0, node.self_ns - node.waited_ns)
            lanes_of[node.operation].add(node.lane)
    wall = snapshot.wall_ns
    largest = max(useful.values(), default=0)
    mean = sum(useful.values()) / len(useful) if useful else 0.0
    workers = [
        Worker(snapshot.lanes[lane].name, snapshot.lanes[lane].kind, ns, 100 * ns / wall if wall else 0.0)
        for lane, ns in useful.most_common(MOST_LANES)
    ]
    concurrency = [
        Concurrency(account.operation, account.busy_ns / wall)
        for account in snapshot.accounts
        if wall and len(lanes_of[account.operation]) > 1
    ]
    return Parallelism(
        cores=cores,
        capacity=_capacity(snapshot, resources, cores),
        workers=tuple(workers),
        lanes=len(useful),
        efficiency=min(1.0, mean / wall) if wall else 0.0,
        load_balance=mean / largest if largest else 0.0,
        communication_efficiency=min(1.0, largest / wall) if wall else 0.0,
        concurrency=tuple(sorted(concurrency, key=lambda item: -item.mean)),
    )


def _capacity(snapshot: Snapshot, resources: Resources, cores: int) -> tuple[Capacity, ...] | None:
    """None without CPU times, or if they do not fit the training time.

    The CPU time of a lane without an open span counts from the start of its thread or process, mostly before the
    training. Only the driver's is known to be in the training. That of the others is in the samples, which are of the
    training.
    """
    whole = snapshot.wall_ns * cores
    if not whole or (snapshot.cpu == "off" and resources.cpu_mean is None):
        return None
    by_category: Counter[str] = Counter()
    here = in_workers = 0
    for node in snapshot.net_nodes:
        lane, cpu = snapshot.lanes[node.lane], cpu_of([node])
        if cpu is None or (node.operation is None and not lane.on_driver):
            continue
        by_category[node.category if node.operation is not None else OUTSIDE] += cpu
        if lane.kind == "process":
            in_workers += cpu
        else:
            here += cpu
    left = whole - here - in_workers
    if left < -TOLERANCE * whole:
        return None  # spans from before the training, such as the creation of environments in workers
    # Samples and spans are not measured at the same instants: together they may exceed the capacity a little.
    # Threads without spans, such as torch's own, and lanes between two spans are only in the samples.
    unseen = _between(0, round((resources.cpu_mean or 0.0) / 100 * snapshot.wall_ns) - here, left)
    children = round((resources.children_cpu_mean or 0.0) / 100 * snapshot.wall_ns) - in_workers
    children = _between(0, children, left - unseen)
    outside = by_category.pop(OUTSIDE, 0) + unseen
    idle = max(0, left - unseen - children)
    named = [*by_category.most_common(), (OUTSIDE, outside), (CHILDREN, children), (IDLE, idle)]
    shares = apportion(1000, [ns for _, ns in named])
    return tuple(Capacity(name, ns, tenths / 10) for (name, ns), tenths in zip(named, shares))


def _between(low: int, value: int, high: int) -> int:
    return max(low, min(value, high))

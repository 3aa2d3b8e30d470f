"""Probes attached for a block, and queries on what they recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator
from contextlib import contextmanager

from rlprof import Node, Profiler, Snapshot
from rlprof.ledger.catalogue import STARTUP
from rlprof.probes import gymnasium, torch, waiting
from rlprof.probes.registry import Attached

GENERIC = (waiting.PROBE, gymnasium.PROBE, torch.PROBE)


@contextmanager
def recorded(*probes, core: str = "auto", **options) -> Iterator[Profiler]:
    """A profiler of the test's own that records with these probes."""
    profiler = Profiler(core, **options)
    attached = Attached(profiler)
    attached.attach(probes)
    profiler.enable()
    try:
        yield profiler
    finally:
        profiler.disable()
        attached.undo()


@contextmanager
def profiled(*probes, **options) -> Iterator[Profiler]:
    """As under `rlprof run`: with the generic probes or those given, and with the start-up."""
    with recorded(*(probes or GENERIC), **options) as profiler:
        profiler.ledger.begin_startup(profiler.profile(STARTUP))
        yield profiler


def snapshot_of(profiler: Profiler) -> Snapshot:
    snapshot = profiler.snapshot()
    snapshot.check()
    return snapshot


def calls(snapshot: Snapshot) -> dict[str, int]:
    return {account.operation: account.calls for account in snapshot.accounts}


def paths(snapshot: Snapshot, lanes: Container[int] | None = None) -> Counter[str]:
    """Calls by place in the call trees: "rollout/env_step"."""
    by_id = {node.id: node for node in snapshot.nodes}

    def path(node: Node) -> str:
        above = path(by_id[node.parent]) if node.parent is not None else ""
        return f"{above}/{node.operation}" if above else node.operation or ""

    found: Counter[str] = Counter()
    for node in snapshot.nodes:
        if node.operation is not None and (lanes is None or node.lane in lanes):
            found[path(node)] += node.calls
    return found


def places(snapshot: Snapshot) -> set[str]:
    """Places in the driver's call tree."""
    return set(paths(snapshot, {lane.id for lane in snapshot.lanes if lane.on_driver}))

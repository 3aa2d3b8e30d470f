"""The generic probes attached for a block, and what a test asks of what they recorded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rlprof import Node, Profiler, Snapshot
from rlprof.probes import gymnasium, torch, waiting
from rlprof.probes.registry import Attached
from rlprof.probes.startup import begin_startup

GENERIC = (waiting.PROBE, gymnasium.PROBE, torch.PROBE)


@contextmanager
def profiled(*probes, core: str = "auto", **options) -> Iterator[Profiler]:
    """A profiler of the test's own that records, with the generic probes or those given."""
    profiler = Profiler(core, **options)
    attached = Attached(profiler)
    attached.attach(probes or GENERIC)
    profiler.enable()
    begin_startup(profiler)
    try:
        yield profiler
    finally:
        attached.undo()
        profiler.disable()


def snapshot_of(profiler: Profiler) -> Snapshot:
    snapshot = profiler.snapshot()
    snapshot.check()
    return snapshot


def calls(snapshot: Snapshot) -> dict[str, int]:
    return {account.operation: account.calls for account in snapshot.accounts}


def places(snapshot: Snapshot) -> set[str]:
    """Where in the driver's call tree something was recorded: "rollout/env_step"."""
    by_id = {node.id: node for node in snapshot.nodes}
    on_driver = {lane.id for lane in snapshot.lanes if lane.on_driver}

    def path(node: Node) -> str:
        parent = by_id.get(node.parent) if node.parent is not None else None
        above = "" if parent is None or parent.operation is None else path(parent) + "/"
        return f"{above}{node.operation}"

    return {path(node) for node in snapshot.nodes if node.operation is not None and node.lane in on_driver}

"""Finds out what an operation does before it is slowed down: whether it computes or waits, with the GIL or without.

A slowdown must be of the same kind as the operation.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from rlprof.experiment.arm import Arm, Iterations
from rlprof.experiment.slowdown_memory import Slowdown, SlowdownMemory
from rlprof.ledger.rows import SlowdownRecord

WARM_UP = 3
ITERATIONS = 5
SECONDS = 0.5
"""Each of the two measurements takes at least so many iterations and seconds."""
ENOUGH_NS = 10_000_000
"""Least time in samples."""
BUSY = 0.85
BLOCKED = 0.1
"""Above this share of its time off the CPU, with no other thread in the way, an operation waits for something."""


@dataclass(frozen=True, slots=True)
class Scheduled:
    """How long threads ran, and were ready without a core, as the kernel reports it; 0 if it does not."""

    cpu_ns: int = 0
    ready_ns: int = 0

    def __sub__(self, other: Scheduled) -> Scheduled:
        return Scheduled(max(0, self.cpu_ns - other.cpu_ns), max(0, self.ready_ns - other.ready_ns))


def scheduled(pid: int) -> Scheduled:
    """Times of a process and all processes below it, since their start."""
    try:
        process = psutil.Process(pid)
        pids = [pid, *(child.pid for child in process.children(recursive=True))]
    except psutil.Error:
        return Scheduled()
    cpu = ready = 0
    for one in pids:
        with suppress(OSError):
            for task in Path(f"/proc/{one}/task").iterdir():
                with suppress(OSError, ValueError):
                    ran, waited, *_ = (task / "schedstat").read_text().split()
                    cpu, ready = cpu + int(ran), ready + int(waited)
    return Scheduled(cpu, ready)


def full_slowdowns(
    arm: Arm, memory: SlowdownMemory, names: Sequence[str], shares_gil: bool
) -> dict[str, Slowdown | str]:
    """For each operation the slowdown that doubles its time; or why it cannot be slowed down."""
    for _ in range(WARM_UP):
        arm.run()
    before, ran = {name: memory.record(name) for name in names}, scheduled(arm.pid)
    measured = _run(arm)
    ran = scheduled(arm.pid) - ran
    seen = {name: _since(before[name], memory.record(name)) for name in names}
    if shares_gil:  # a separate measurement: while the sampler holds the GIL, everything takes longer
        memory.sampling = True
        _run(arm)
        memory.sampling = False
    found: dict[str, Slowdown | str] = {}
    for name in names:
        if seen[name].calls:
            held = _held(seen[name], _since(before[name], memory.record(name))) if shares_gil else 0.0
            found[name] = Slowdown(1.0, held, _blocked(seen[name], measured, ran, shares_gil))
        elif seen[name].missed:
            found[name] = f"{name} runs in asyncio tasks, where it cannot be slowed down alone"
        elif measured:
            found[name] = f"{name} has no calls in these iterations that could be slowed down"
    return found


def _run(arm: Arm) -> list[Iterations]:
    measured: list[Iterations] = []
    began = time.monotonic()
    while len(measured) < ITERATIONS or time.monotonic() - began < SECONDS:
        if (iteration := arm.run()) is None:
            break
        measured.append(iteration)
    return measured


def _since(before: SlowdownRecord, after: SlowdownRecord) -> SlowdownRecord:
    return SlowdownRecord._make(now - then for then, now in zip(before, after))


def _held(seen: SlowdownRecord, sampled: SlowdownRecord) -> float:
    """The part of its computing that needs the GIL."""
    rate = seen.cpu / seen.wall if seen.wall else 0.0  # at which it computes when the GIL is free
    if sampled.sampled < ENOUGH_NS or not rate:
        return 0.0
    return max(0.0, 1 - sampled.progress / sampled.sampled / rate)


def _blocked(seen: SlowdownRecord, measured: Sequence[Iterations], ran: Scheduled, shares_gil: bool) -> float:
    """The part of its time in which it waits for something that is not caused by other threads."""
    if not seen.wall:
        return 0.0
    # Time in which it was ready to run without a core is caused by others. A slowdown must not repeat it.
    without_core = ran.ready_ns * min(1.0, seen.cpu / ran.cpu_ns) if ran.cpu_ns else 0.0
    blocked = 1 - (seen.cpu + without_core) / seen.wall
    gil_is_busy = shares_gil and sum(one.cpu_ns for one in measured) > BUSY * sum(one.wall_ns for one in measured)
    return blocked if blocked > BLOCKED and not gil_is_busy else 0.0

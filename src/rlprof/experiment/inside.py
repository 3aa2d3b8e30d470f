"""One arm of a comparison: at each iteration it tells what the one before took, and waits until it may go on."""

from __future__ import annotations

import os
import resource
import struct
import threading
import time
from collections.abc import Iterator

import msgspec

from rlprof.ledger.catalogue import TURN_WAIT
from rlprof.ledger.profiler import Profiler
from rlprof.ledger.snapshot import Node
from rlprof.recording.environment import TURNS, Environment
from rlprof.recording.procfs import all_descendants, cpu_of

LENGTH = struct.Struct("<I")
"""Goes before each message."""

ROOT = ""
"""The path of time with no span open."""


class Told(msgspec.Struct):
    """What has happened up to the boundary of an iteration. `wall_ns` and `cpu_ns` are of the last turn, the rest since
    the start."""

    wall_ns: int
    cpu_ns: int
    """Of all threads of the process; with the ledger, of the processes below it, too."""
    steps: int
    episodes: int
    ledger: dict[str, int]
    """By the path of operations, `rollout/env_step`: ns of the wall time."""
    calls: dict[str, int]


def take_turns(profiler: Profiler, environment: Environment) -> None:
    """This process is an arm; what it starts is none."""
    go, done, ledger = map(int, environment.pop(TURNS).split(","))
    for end in (go, done):
        os.set_inheritable(end, False)
    profiler.listen(_Turns(profiler, go, done, bool(ledger)))


class _Turns:
    def __init__(self, profiler: Profiler, go: int, done: int, ledger: bool) -> None:
        self._profiler = profiler
        self._go = go
        self._done = done
        self._ledger = ledger
        self._waits = profiler.profile(TURN_WAIT)
        self._below = 0
        self._more = 0
        """Iterations of this turn, after the one that runs."""
        self._wall = time.perf_counter_ns()
        self._cpu = time.process_time_ns()

    def __call__(self, what: str) -> None:
        wall, cpu = time.perf_counter_ns(), time.process_time_ns()
        if what != "iteration" or threading.get_ident() != self._profiler.driver:
            return
        if self._more:
            self._more -= 1
            return
        with self._waits:
            try:
                below = self._cpu_below()
                self._tell(wall - self._wall, cpu - self._cpu + max(0, below - self._below))
                goes_on = os.read(self._go, 1)
            except BrokenPipeError:
                goes_on = b""
            if not goes_on:
                raise SystemExit(0)  # nobody compares any more: the training ends as it would have ended itself
            self._more = goes_on[0] - 1
            self._below = self._cpu_below()  # they may have gone on meanwhile
        self._wall, self._cpu = time.perf_counter_ns(), time.process_time_ns()

    def _cpu_below(self) -> int:
        """CPU time of the processes that this one has started, and they, with those that have ended."""
        if not self._ledger:
            return 0
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        living = sum(map(cpu_of, all_descendants(os.getpid())))
        return round(1e9 * (ended.ru_utime + ended.ru_stime)) + living

    def _tell(self, wall_ns: int, cpu_ns: int) -> None:
        if self._ledger:
            snapshot = self._profiler.snapshot()
            ledger: dict[str, int] = {}
            calls: dict[str, int] = {}
            for path, node in paths(snapshot.nodes):
                ledger[path] = ledger.get(path, 0) + node.ledger_ns
                calls[path] = calls.get(path, 0) + node.calls
            what = Told(wall_ns, cpu_ns, snapshot.steps, snapshot.episodes, ledger, calls)
        else:
            what = Told(wall_ns, cpu_ns, self._profiler.ledger.steps, 0, {}, {})
        told = msgspec.json.encode(what)
        data = memoryview(LENGTH.pack(len(told)) + told)
        while data:
            data = data[os.write(self._done, data) :]


def paths(nodes: list[Node]) -> Iterator[tuple[str, Node]]:
    """Each node and the operations from the outermost to its own. Lanes are put together."""
    found: dict[int, str] = {}
    for node in nodes:  # parents come first
        if node.operation is None:
            found[node.id] = ROOT
        else:
            above = found.get(node.parent, ROOT) if node.parent is not None else ROOT
            found[node.id] = f"{above}/{node.operation}" if above else node.operation
        yield found[node.id], node

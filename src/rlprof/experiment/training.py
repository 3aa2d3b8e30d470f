"""The training's end of an experiment: at each iteration it sends what the last one took, and waits for arm.py."""

from __future__ import annotations

import os
import resource
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rlprof.experiment.protocol import PIPES, SLOWDOWNS, Boundary, pack
from rlprof.experiment.slowdown_memory import start_slowdowns
from rlprof.ledger.catalogue import TURN_WAIT
from rlprof.ledger.profiler import Profiler
from rlprof.ledger.snapshot import Node
from rlprof.recording.environment import CONTROLLER, Environment
from rlprof.recording.procfs import all_descendants, cpu_of

if TYPE_CHECKING:
    from rlprof.recording.recording import Recording

ROOT = ""
"""The path of time in which no span is open."""


def start(profiler: Profiler, environment: Environment, recording: Recording | None) -> None:
    """Called when rlprof starts in a process of the training. A worker process has no recording."""
    if SLOWDOWNS in environment:
        start_slowdowns(profiler, environment, samples=recording is not None)
    else:
        del environment[CONTROLLER]  # its child processes run as usual
    if recording is not None and PIPES in environment:
        recording.quiet = True
        recording.at_end.clear()  # the session is deleted with the arm, so nobody would read its reports
        go, done, ledger = map(int, environment.pop(PIPES).split(","))  # child processes do not get the pipes
        for end in (go, done):
            os.set_inheritable(end, False)
        profiler.listen(_Boundaries(profiler, go, done, bool(ledger)))


class _Boundaries:
    """Listens for iterations, and stops at each until the controller lets it go on."""

    def __init__(self, profiler: Profiler, go: int, done: int, ledger: bool) -> None:
        self._profiler = profiler
        self._go = go
        self._done = done
        self._ledger = ledger
        self._wait = profiler.profile(TURN_WAIT)
        self._children_cpu = 0
        self._more = 0
        """Iterations to run before the next stop, after the current one."""
        self._wall = time.perf_counter_ns()
        self._cpu = time.process_time_ns()

    def __call__(self, what: str) -> None:
        wall, cpu = time.perf_counter_ns(), time.process_time_ns()
        if what != "iteration" or threading.get_ident() != self._profiler.driver:
            return
        if self._more:
            self._more -= 1
            return
        with self._wait:
            try:
                children = max(0, self._cpu_of_children() - self._children_cpu)
                self._send(wall - self._wall, cpu - self._cpu + children)
                go = os.read(self._go, 1)
            except BrokenPipeError:
                go = b""
            if not go:
                raise SystemExit(0)  # the controller has gone: the training ends as if it had finished
            self._more = go[0] - 1
            self._children_cpu = self._cpu_of_children()  # they may have run meanwhile
        self._wall, self._cpu = time.perf_counter_ns(), time.process_time_ns()

    def _cpu_of_children(self) -> int:
        """CPU time of all processes below this one, including those that have ended."""
        if not self._ledger:
            return 0
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        living = sum(map(cpu_of, all_descendants(os.getpid())))
        return round(1e9 * (ended.ru_utime + ended.ru_stime)) + living

    def _send(self, wall_ns: int, cpu_ns: int) -> None:
        if self._ledger:
            snapshot = self._profiler.snapshot()
            ledger: dict[str, int] = {}
            calls: dict[str, int] = {}
            for path, node in paths(snapshot.nodes):
                ledger[path] = ledger.get(path, 0) + node.ledger_ns
                calls[path] = calls.get(path, 0) + node.calls
            boundary = Boundary(wall_ns, cpu_ns, snapshot.steps, snapshot.episodes, ledger, calls)
        else:
            boundary = Boundary(wall_ns, cpu_ns, self._profiler.ledger.steps, 0, {}, {})
        data = memoryview(pack(boundary))
        while data:
            data = data[os.write(self._done, data) :]


def paths(nodes: list[Node]) -> Iterator[tuple[str, Node]]:
    """Each node with its path: the operations from the outermost to its own. All lanes share one tree."""
    found: dict[int, str] = {}
    for node in nodes:  # parents come first
        if node.operation is None:
            found[node.id] = ROOT
        else:
            above = found.get(node.parent, ROOT) if node.parent is not None else ROOT
            found[node.id] = f"{above}/{node.operation}" if above else node.operation
        yield found[node.id], node

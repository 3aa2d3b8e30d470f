"""Speed of torch, or of numpy without torch, with one thread and with its own number of threads."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from statistics import median
from time import perf_counter_ns
from typing import Any

MATRIX = 512
HIDDEN = 64
ACTING_BATCH = 8
LEARNING_BATCH = 1024
_ROUNDS = 7
_LEAST_ROUNDS = 3
_BUDGET_NS = 1_000_000_000
"""Time limit for one case, if the machine is very slow."""
_SLOTS = 4
_SLOT_NS = 300_000_000
# They end by themselves if this process is killed. They are forked, because starting interpreters takes seconds.
# They are a process group, to be ended together, but not a session: Linux divides the cores between sessions first, and
# the workers of a training are in the session of the training.
_NEIGHBOURS = """
import os, sys, time
os.setpgrp()
number, end = int(sys.argv[1]), time.monotonic() + 10
for _ in range(number - 1):
    if not os.fork():
        break
print("busy", flush=True)
while time.monotonic() < end:
    pass
"""


@dataclass(frozen=True, slots=True)
class Threading:
    """One piece of work, timed alternately with one thread and with all. None means not measured."""

    one_ns: float | None
    all_ns: float | None

    @property
    def slowdown(self) -> float | None:
        """Time with all threads divided by the time with one. Below 1, threads help."""
        return self.all_ns / self.one_ns if self.one_ns and self.all_ns else None


@dataclass(frozen=True, slots=True)
class Compute:
    """Speed of the installed library."""

    library: str
    """"torch" or "numpy"."""
    version: str
    matrix: Threading
    """Two 512 x 512 float32 matrices multiplied."""
    acting: Threading
    """A policy with two hidden layers of 64 computes 8 actions."""
    import_ns: int | None = None
    """Time of the import; None if it was imported before."""
    threads: int | None = None
    interop_threads: int | None = None
    cuda_build: str | None = None
    """CUDA version that torch was built for; None for a CPU build."""
    cuda_available: bool = False
    learning: Threading | None = None
    """The same network trained on a minibatch of 1024: forward, backward and Adam."""
    crowded: Threading | None = None
    """The same as learning while every core is busy with another process, as with environments in worker processes."""
    neighbours: int = 0
    """Number of these processes."""

    @property
    def matrix_flops(self) -> float | None:
        """Floating-point operations per second, with the faster number of threads."""
        known = [ns for ns in (self.matrix.one_ns, self.matrix.all_ns) if ns]
        return 2 * MATRIX**3 / min(known) * 1e9 if known else None


def measure_torch(cores: int) -> Compute:
    """Raises whatever importing torch raises."""
    known = "torch" in sys.modules
    begin = perf_counter_ns()
    import torch  # noqa: PLC0415 - optional, and it takes seconds

    import_ns = None if known else perf_counter_ns() - begin
    threads = torch.get_num_threads()

    def timed(work: Callable[[], Any], calls: int) -> Threading:
        try:
            return _in_turns(work, calls, threads, torch.set_num_threads)
        finally:
            torch.set_num_threads(threads)

    left, right = torch.rand(MATRIX, MATRIX), torch.rand(MATRIX, MATRIX)
    learn = _learning(torch)
    crowded, neighbours = None, 0
    matrix, acting, learning = timed(lambda: left @ right, 3), timed(_acting(torch), 50), timed(learn, 5)
    if threads > 1:
        with _busy_cores(cores) as neighbours:
            crowded = _sustained(learn, threads, torch.set_num_threads) if neighbours else None
        torch.set_num_threads(threads)
    return Compute(
        library="torch",
        version=str(torch.__version__),
        matrix=matrix,
        acting=acting,
        import_ns=import_ns,
        threads=threads,
        interop_threads=torch.get_num_interop_threads(),
        cuda_build=torch.version.cuda,
        cuda_available=torch.cuda.is_available(),
        learning=learning,
        crowded=crowded,
        neighbours=neighbours,
    )


def measure_numpy() -> Compute:
    """The cases that numpy can do. Its number of threads cannot be set, so there is nothing to compare."""
    known = "numpy" in sys.modules
    begin = perf_counter_ns()
    import numpy as np  # noqa: PLC0415 - optional

    import_ns = None if known else perf_counter_ns() - begin
    random = np.random.default_rng(0)
    left, right = (random.random((MATRIX, MATRIX), dtype=np.float32) for _ in range(2))
    batch, first, second = (random.random((rows, HIDDEN), dtype=np.float32) for rows in (ACTING_BATCH, HIDDEN, HIDDEN))
    matrix = _in_turns(lambda: left @ right, 3)
    acting = _in_turns(lambda: np.tanh(np.tanh(batch @ first) @ second), 50)
    return Compute("numpy", np.__version__, matrix, acting, import_ns)


def _network(torch: Any) -> Any:
    nn = torch.nn
    hidden = (nn.Linear(8, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, HIDDEN), nn.Tanh())
    return nn.Sequential(*hidden, nn.Linear(HIDDEN, 4))


def _acting(torch: Any) -> Callable[[], Any]:
    network, observations = _network(torch), torch.rand(ACTING_BATCH, 8)

    def act() -> None:
        with torch.no_grad():
            network(observations)

    return act


def _learning(torch: Any) -> Callable[[], Any]:
    network, observations = _network(torch), torch.rand(LEARNING_BATCH, 8)
    optimizer = torch.optim.Adam(network.parameters())

    def learn() -> None:
        optimizer.zero_grad()
        network(observations).square().mean().backward()
        optimizer.step()

    return learn


def _in_turns(
    work: Callable[[], Any], calls: int, threads: int | None = None, set_threads: Callable[[int], None] | None = None
) -> Threading:
    """Median times per call. They alternate, so that a change of the machine's speed affects both alike."""
    one: list[float] = []
    all: list[float] = []
    turns = [(all, threads)] if threads is None else [(one, 1)] if threads == 1 else [(one, 1), (all, threads)]
    end = perf_counter_ns() + _BUDGET_NS
    for i in range(_ROUNDS):
        if i >= _LEAST_ROUNDS and perf_counter_ns() > end:
            break
        for times, number in turns:
            if set_threads is not None and number is not None:
                set_threads(number)
            work()  # the first call after a change wakes the threads up
            begin = perf_counter_ns()
            for _ in range(calls):
                work()
            times.append((perf_counter_ns() - begin) / calls)
    return Threading(median(one) if one else None, median(all) if all else None)


def _sustained(work: Callable[[], Any], threads: int, set_threads: Callable[[int], None]) -> Threading:
    """Mean times per call. One call in ten may take a hundred times longer than the rest, and it is the cost."""
    spent = {1: 0, threads: 0}
    calls = {1: 0, threads: 0}
    for _ in range(_SLOTS):
        for number in (1, threads):
            set_threads(number)
            begin = now = perf_counter_ns()
            while now < begin + _SLOT_NS:
                work()
                calls[number] += 1
                now = perf_counter_ns()
            spent[number] += now - begin
    return Threading(spent[1] / calls[1], spent[threads] / calls[threads])


@contextmanager
def _busy_cores(cores: int) -> Iterator[int]:
    """Keep every core busy with another process inside the block. Yields their number, 0 if that failed."""
    if not hasattr(os, "fork"):
        yield 0
        return
    command = [sys.executable, "-c", _NEIGHBOURS, str(cores)]
    first = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert first.stdout is not None
    try:
        yield cores if first.stdout.readline() else 0
    finally:
        with suppress(ProcessLookupError):
            os.killpg(first.pid, signal.SIGKILL)
        first.kill()  # in case it did not get as far as making the group
        first.wait()
        first.stdout.close()

"""How fast this machine does the small things a training is made of, and how evenly."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter_ns, thread_time_ns

import psutil  # type: ignore[import-untyped, unused-ignore]  # it ships no types

from rlprof.ledger.profiler import Profiler

try:
    from rlprof.ledger import _core
except ImportError:  # not built
    _core = None  # type: ignore[assignment]

try:
    import resource
except ImportError:  # not on every system
    resource = None  # type: ignore[assignment]

_CLOCK_PAIRS = 5_000
_WORK = 20_000
"""Additions in one round of the fixed work: about a millisecond, like an environment step."""
_COPY_BYTES = 64 << 20
"""Larger than most caches, so that memory is measured."""
_COPIES = 5
_STARTS = 5
_FORKS = 20
_WRITE_BYTES = 64 << 10
_PATIENCE_S = 20
# In another process, because forking this one, which may have threads and torch, could hang.
_TIME_FORKS = f"""
import os, time
for _ in range({_FORKS}):
    begin = time.perf_counter_ns()
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    print(time.perf_counter_ns() - begin)
"""


@dataclass(frozen=True, slots=True)
class Clock:
    """Cost of measuring."""

    pair_ns: float
    """Time of two readings of time.perf_counter_ns(), the least that timing in Python costs."""
    core: str
    """The core that rlprof records with: "c" or "python"."""
    core_built: bool
    span_ns: float
    """Cost of one empty span."""
    span_uncertainty_ns: float
    clock: str
    """"tsc" or "monotonic"."""
    cpu: str
    """How the CPU time of threads is read; "off" if it is not read."""
    tsc_refusal: str | None = None
    """Why the CPU's counter (TSC) cannot be the clock."""


@dataclass(frozen=True, slots=True)
class Steadiness:
    """Times of the same small piece of work, many times."""

    rounds: int
    median_ns: float
    p95_ns: int
    worst_ns: int
    off_cpu_share: float
    """Fraction of the wall time in which the work was ready to run, but something else ran."""
    switched_out: int | None
    """Number of preemptions."""

    @property
    def spread(self) -> float:
        """How much longer the slowest twentieth of the rounds took than the median."""
        return self.p95_ns / self.median_ns - 1


@dataclass(frozen=True, slots=True)
class Processes:
    """Cost of starting a process."""

    spawn_ns: float | None
    """Time of `python -c pass`, which every worker started by spawn or forkserver pays."""
    fork_ns: float | None
    """Time of a fork of a bare interpreter, until it has ended."""


def measure_clock() -> Clock:
    profiler = Profiler()
    cost = profiler.measure_span_cost()  # as the profiler itself does when it is enabled
    snapshot = profiler.snapshot()
    return Clock(
        pair_ns=_clock_pair(),
        core=profiler.core,
        core_built=_core is not None,
        span_ns=cost.inside_ns + cost.outside_ns,
        span_uncertainty_ns=cost.uncertainty_ns,
        clock=snapshot.clock,
        cpu=snapshot.cpu,
        tsc_refusal=None if _core is None else _core.tsc_refusal(),
    )


def _clock_pair() -> float:
    times = []
    for _ in range(_CLOCK_PAIRS):
        begin = perf_counter_ns()
        times.append(perf_counter_ns() - begin)
    # On some machines a reading is shorter than the clock's resolution. Only the mean is finer.
    middle = sorted(times)[_CLOCK_PAIRS // 10 : -_CLOCK_PAIRS // 10]
    return sum(middle) / len(middle)


class Rounds:
    """The fixed work in several parts: a machine may be steady for one second, but not for ten."""

    def __init__(self) -> None:
        self._wall: list[int] = []
        self._cpu = 0
        self._switched: int | None = 0

    def run(self, rounds: int) -> None:
        _fixed_work()
        switched = _switched_out()
        for _ in range(rounds):
            cpu, begin = thread_time_ns(), perf_counter_ns()
            _fixed_work()
            self._wall.append(perf_counter_ns() - begin)
            self._cpu += thread_time_ns() - cpu
        after = _switched_out()
        if self._switched is not None:
            self._switched = None if switched is None or after is None else self._switched + after - switched

    def steadiness(self) -> Steadiness:
        wall = sorted(self._wall)
        return Steadiness(
            rounds=len(wall),
            median_ns=median(wall),
            p95_ns=wall[int(0.95 * (len(wall) - 1))],
            worst_ns=wall[-1],
            off_cpu_share=max(0.0, 1 - self._cpu / sum(wall)),
            switched_out=self._switched,
        )


def _fixed_work() -> int:
    total = 0
    for i in range(_WORK):
        total += i
    return total


def _switched_out() -> int | None:
    if resource is None:
        return None
    return resource.getrusage(getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)).ru_nivcsw


def measure_copy() -> float | None:
    """Bytes per second from memory to memory on one thread. None if there is too little memory."""
    if psutil.virtual_memory().available < 8 * _COPY_BYTES:
        return None
    source, target = bytearray(b"\1") * _COPY_BYTES, bytearray(b"\2") * _COPY_BYTES
    view = memoryview(target)
    times = []
    for _ in range(_COPIES):
        begin = perf_counter_ns()
        view[:] = source
        times.append(perf_counter_ns() - begin)
    return _COPY_BYTES / median(times) * 1e9


def measure_processes() -> Processes:
    spawns = []
    for _ in range(_STARTS):
        begin = perf_counter_ns()
        if _output_of("pass") is None:
            return Processes(None, None)
        spawns.append(perf_counter_ns() - begin)
    forks = [int(line) for line in (_output_of(_TIME_FORKS) or "").split()] if hasattr(os, "fork") else []
    return Processes(median(spawns), median(forks) if forks else None)


def _output_of(program: str) -> str | None:
    try:
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=_PATIENCE_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


def measure_fsync(folder: str, writes: int) -> Sequence[int]:
    """Times of writes of 64 KiB, each until it is on the disk. Empty if the folder is not writable."""
    times: list[int] = []
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            for _ in range(writes):
                begin = perf_counter_ns()
                file.write(os.urandom(_WRITE_BYTES))
                file.flush()
                os.fsync(file.fileno())
                times.append(perf_counter_ns() - begin)
    except OSError:
        return []
    return times

"""Check that a long recording stays exact and that its memory does not grow.

Threads record spans as fast as they can, on two levels, under several names, as `with` blocks and as decorated calls.
The driver waits for them and takes a snapshot now and then. At the end, every count must be exact, every nanosecond
must be accounted for, and the process must not have grown since the end of a short warm-up.

A second phase starts many short-lived threads and asyncio tasks that record a few spans each. The memory that they
leave behind must be bounded.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import resource
import sys
import threading
from collections import Counter
from collections.abc import Callable
from math import ceil
from pathlib import Path
from time import perf_counter
from typing import Any

from _common import Bar, Options, conclude, describe_machine, figure_table, progress, sum_error

from rlprof import Profiler, Snapshot
from rlprof.ledger.rows import EVENT

MB = 1 << 20
TIMELINE = 65536
SHORT_THREADS, AT_ONCE, TASKS = 5_000, 10, 1_000
TASKS_AT_ONCE = 50
LANES = 64 * 2 + AT_ONCE + TASKS_AT_ONCE + 16
"""The ledger keeps at most 64 ended lanes per group. Here it has two groups, and the lanes that are alive."""

BARS = (
    Bar("rss_growth_bytes", "<=", MB, " B"),
    Bar("counts_exact", "==", True),
    Bar("sum_error_ns", "==", 0, " ns"),
    Bar("timeline_exact", "==", True),
    Bar("threads_rss_late_growth_bytes", "<=", MB, " B"),
    Bar("lanes", "<=", LANES),
)


def resident() -> int:
    """The resident memory of the process, or its peak where there is no /proc."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def counts(snapshot: Snapshot) -> Counter[str]:
    return Counter({account.operation: account.calls for account in snapshot.accounts})


SPANS = Counter(env_step=2, physics=1, policy_forward=2, matmul=1, store=2, learn=1, backward=1, wait_for_batch=1)
"""Spans by name that a recording thread records per round."""


class Work:
    """The work of a recording thread."""

    def __init__(self, profiler: Profiler) -> None:
        self.profile = profiler.profile
        self.matmul: Callable[[], None] = profiler.profile_function("matmul")(_nothing)
        self.store: Callable[[], None] = profiler.profile_function("store")(_nothing)
        self.learn: Callable[[], None] = profiler.profile_function("learn")(self._learn)

    def _learn(self) -> None:
        with self.profile("backward"):
            pass

    def rounds(self, count: int) -> None:
        profile, matmul, store, learn = self.profile, self.matmul, self.store, self.learn
        for _ in range(count):
            with profile("env_step"), profile("physics"):
                pass
            with profile("policy_forward"):
                matmul()
            with profile("policy_forward"):
                store()
            store()
            learn()
            with profile("env_step"), profile("wait_for_batch", wait=True):
                pass


def _nothing() -> None:
    pass


class Soak:
    """The long phase: a few threads, very many spans."""

    def __init__(self, profiler: Profiler, threads: int, rounds: int) -> None:
        self.profiler = profiler
        self.work = Work(profiler)
        self.threads = threads
        self.rounds = rounds
        """Rounds per thread."""
        self.done = [0] * threads
        self.sum_error = 0
        self.seconds = 0.0
        self.warm: int | None = None
        self.highest: int | None = None

    @property
    def spans(self) -> int:
        return self.rounds * self.threads * SPANS.total()

    def run(self) -> None:
        """Record, and check the memory meanwhile. The warm-up ends after a fiftieth of the rounds."""
        began = perf_counter()
        portion = max(1, self.rounds // 500)
        threads = [threading.Thread(target=self._record, args=(i, portion)) for i in range(self.threads)]
        for thread in threads:
            thread.start()
        reported = 0.0
        with self.profiler.profile("soak", wait=True):
            while any(thread.is_alive() for thread in threads):
                threads[0].join(0.05)
                share = sum(self.done) / (self.rounds * self.threads)
                if share >= reported + 0.04 or self.warm is None:
                    reported = share
                    self._look(share, warmed_up=share >= 0.02)
            for thread in threads:
                thread.join()
        self.seconds = perf_counter() - began
        self._look(1.0, warmed_up=True)

    def _record(self, i: int, portion: int) -> None:
        while self.done[i] < self.rounds:
            now = min(portion, self.rounds - self.done[i])
            self.work.rounds(now)
            self.done[i] += now

    def _look(self, share: float, warmed_up: bool) -> None:
        self.sum_error = max(self.sum_error, sum_error(self.profiler.snapshot()))
        rss = resident()
        if self.warm is None:
            if warmed_up:
                self.warm = rss
            return
        self.highest = max(self.highest or 0, rss)
        grown = (rss - self.warm) / MB
        progress(f"{share:6.1%}  {share * self.spans:,.0f} spans  RSS {rss / MB:.2f} MB ({grown:+.2f} MB)")

    @property
    def growth(self) -> int | None:
        """Growth from the end of the warm-up to the highest value; None if the run was too short to tell."""
        return None if self.warm is None or self.highest is None else max(0, self.highest - self.warm)

    def expected(self) -> Counter[str]:
        return Counter({name: count * self.rounds * self.threads for name, count in SPANS.items()})


def timeline_is_exact(profiler: Profiler, spans: int) -> bool:
    """True if the ring holds the last spans and has counted the spans that it lost."""
    events, lost = profiler.drain_timeline()
    kept = len(events) // EVENT.size
    return kept == min(spans, TIMELINE) and kept + lost == spans


class ShortLived:
    """The second phase: many threads and tasks, a few spans each."""

    def __init__(self, profiler: Profiler) -> None:
        self.profiler = profiler
        self.growth = 0
        self.late_growth = 0
        """Growth after the first fifth of the threads. All permanent memory is allocated by then."""

    def run(self) -> None:
        self._start_threads(500, _nothing)  # the allocator and the system grow at first use
        gc.collect()
        before = resident()
        self._start_threads(SHORT_THREADS // 5, self._spans)
        early = resident()
        progress(f"{SHORT_THREADS // 5:,} threads  RSS {(early - before) / MB:+.2f} MB")
        self._start_threads(SHORT_THREADS - SHORT_THREADS // 5, self._spans)
        with self.profiler.profile("serve"):
            asyncio.run(self._tasks())
        gc.collect()
        after = resident()
        self.growth, self.late_growth = after - before, after - early
        progress(f"{SHORT_THREADS:,} threads, {TASKS:,} tasks  RSS {self.growth / MB:+.2f} MB")

    def _spans(self) -> None:
        profile = self.profiler.profile
        for _ in range(3):
            with profile("short_outer"), profile("short_inner"):
                pass

    def _start_threads(self, count: int, target: Callable[[], None]) -> None:
        for _ in range(count // AT_ONCE):
            threads = [threading.Thread(target=target) for _ in range(AT_ONCE)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    async def _tasks(self) -> None:
        async def task() -> None:
            for _ in range(2):
                with self.profiler.profile("task_outer"):
                    await asyncio.sleep(0)
                    self._spans()

        for _ in range(TASKS // TASKS_AT_ONCE):
            await asyncio.gather(*(task() for _ in range(TASKS_AT_ONCE)))

    @staticmethod
    def expected() -> Counter[str]:
        short = 3 * SHORT_THREADS + 6 * TASKS
        return Counter(short_outer=short, short_inner=short, task_outer=2 * TASKS, serve=1)


def run(options: argparse.Namespace) -> dict[str, Any]:
    profiler = Profiler(core=options.core)
    profiler.enable(timeline=TIMELINE)
    rounds = max(1, ceil(options.spans / (options.threads * SPANS.total())))
    soak = Soak(profiler, options.threads, rounds)
    soak.run()
    expected = soak.expected() + Counter(soak=1)
    counts_exact = counts(profiler.snapshot()) == expected
    timeline_exact = timeline_is_exact(profiler, expected.total())
    short = ShortLived(profiler)
    short.run()
    profiler.disable()
    snapshot = profiler.snapshot()
    snapshot.check()
    found = counts(snapshot)
    expected += short.expected()
    return {
        "core": profiler.core,
        "threads": options.threads,
        "spans": soak.spans,
        "seconds": soak.seconds,
        "spans_per_second": soak.spans / soak.seconds,
        "rss_growth_bytes": soak.growth,
        "rss_bytes": resident(),
        "counts_exact": counts_exact and found == expected,
        "count_errors": {
            name: found[name] - expected[name] for name in found | expected if found[name] != expected[name]
        },
        "sum_error_ns": max(soak.sum_error, sum_error(snapshot)),
        "timeline_exact": timeline_exact,
        "short_lived_threads": SHORT_THREADS,
        "short_lived_tasks": TASKS,
        "threads_rss_growth_bytes": short.growth,
        "threads_rss_late_growth_bytes": short.late_growth,
        "lanes": len(snapshot.lanes),
        "nodes": len(snapshot.nodes),
        "open_spans": snapshot.open_spans,
        "clock_drift_ns": snapshot.clock_drift_ns,
    }


def main() -> None:
    parser = Options(__doc__)
    parser.number("--spans", 1e7, "total number of spans; the memory figures need 1e6 or more")
    parser.number("--threads", 4, "number of recording threads")
    parser.add_argument("--core", default="auto", choices=("auto", "c", "python"), help="core of the ledger")
    options = parser.parse_args()
    if options.spans < 1 or options.threads < 1:
        parser.error("--spans and --threads must be at least 1")
    results = {"machine": describe_machine(), **run(options)}
    conclude(results, BARS, options, figure_table("Soak", results))


if __name__ == "__main__":
    main()

"""Whether recording stays exact and its memory flat, however long it goes on.

Threads record spans as fast as they can, two deep, under several names, as `with` blocks and as decorated calls, while
the driver waits for them and now and then takes a snapshot. At the end every count must be exact and every nanosecond
accounted for, and from the end of a short warm-up on the process must not have grown.

A second phase starts many short-lived threads and asyncio tasks that record a few spans each: what they leave behind
must be bounded.
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

from _common import Bar, argument_parser, bar_table, describe_machine, judge, progress, write_results
from rich.table import Table

from rlprof import Profiler, Snapshot
from rlprof.ledger.rows import EVENT

MB = 1 << 20
TIMELINE = 65536
SHORT_THREADS, AT_ONCE, TASKS = 5_000, 10, 1_000
TASKS_AT_ONCE = 50
LANES = 64 * 2 + AT_ONCE + TASKS_AT_ONCE + 16
"""The ledger keeps at most 64 ended lanes a group, and has two groups here; besides, those that are alive."""

BARS = (
    Bar("rss_growth_bytes", "<=", MB, " B"),
    Bar("counts_exact", "==", True),
    Bar("sum_error_ns", "==", 0, " ns"),
    Bar("timeline_exact", "==", True),
    Bar("threads_rss_late_growth_bytes", "<=", MB, " B"),
    Bar("lanes", "<=", LANES),
)


def resident() -> int:
    """The process's resident memory; its peak where there is no /proc."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def sum_error(snapshot: Snapshot) -> int:
    accounts = sum(account.ledger_ns for account in snapshot.accounts)
    return abs(accounts + snapshot.unattributed_ns + snapshot.rlprof_ns - snapshot.wall_ns)


def counts(snapshot: Snapshot) -> Counter[str]:
    return Counter({account.operation: account.calls for account in snapshot.accounts})


SPANS = Counter(env_step=2, physics=1, policy_forward=2, matmul=1, store=2, learn=1, backward=1, wait_for_batch=1)
"""By name, the spans of one turn of a recording thread."""


class Work:
    """What a recording thread does."""

    def __init__(self, profiler: Profiler) -> None:
        self.profile = profiler.profile
        self.matmul: Callable[[], None] = profiler.profile_function("matmul")(_nothing)
        self.store: Callable[[], None] = profiler.profile_function("store")(_nothing)
        self.learn: Callable[[], None] = profiler.profile_function("learn")(self._learn)

    def _learn(self) -> None:
        with self.profile("backward"):
            pass

    def turns(self, count: int) -> None:
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

    def __init__(self, profiler: Profiler, threads: int, turns: int) -> None:
        self.profiler = profiler
        self.work = Work(profiler)
        self.threads = threads
        self.turns = turns
        """Of each thread."""
        self.done = [0] * threads
        self.sum_error = 0
        self.seconds = 0.0
        self.warm: int | None = None
        self.highest: int | None = None

    @property
    def spans(self) -> int:
        return self.turns * self.threads * SPANS.total()

    def run(self) -> None:
        """Record, and look on: after a fiftieth of the turns the warm-up is over."""
        began = perf_counter()
        portion = max(1, self.turns // 500)
        threads = [threading.Thread(target=self._record, args=(i, portion)) for i in range(self.threads)]
        for thread in threads:
            thread.start()
        reported = 0.0
        with self.profiler.profile("soak", wait=True):
            while any(thread.is_alive() for thread in threads):
                threads[0].join(0.05)
                share = sum(self.done) / (self.turns * self.threads)
                if share >= reported + 0.04 or self.warm is None:
                    reported = share
                    self._look(share, warmed_up=share >= 0.02)
            for thread in threads:
                thread.join()
        self.seconds = perf_counter() - began
        self._look(1.0, warmed_up=True)

    def _record(self, i: int, portion: int) -> None:
        while self.done[i] < self.turns:
            now = min(portion, self.turns - self.done[i])
            self.work.turns(now)
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
        """From the warm-up's end to the highest that was seen; None where it was over at once."""
        return None if self.warm is None or self.highest is None else max(0, self.highest - self.warm)

    def expected(self) -> Counter[str]:
        turns = self.turns * self.threads
        return Counter({name: count * turns for name, count in SPANS.items()})


def timeline_is_exact(profiler: Profiler, spans: int) -> bool:
    """The ring holds the last spans, and has counted those it lost."""
    events, lost = profiler.drain_timeline()
    kept = len(events) // EVENT.size
    return kept == min(spans, TIMELINE) and kept + lost == spans


class ShortLived:
    """The second phase: many threads and tasks, a few spans each."""

    def __init__(self, profiler: Profiler) -> None:
        self.profiler = profiler
        self.growth = 0
        self.late_growth = 0
        """From the first fifth of the threads on: what is kept once and for all is there by then."""

    def run(self) -> None:
        self._start_threads(500, _nothing)  # the allocator's and the system's own first use
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
    turns = max(1, ceil(options.spans / (options.threads * SPANS.total())))
    soak = Soak(profiler, options.threads, turns)
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


def soak_table(results: dict[str, Any]) -> Table:
    table = Table(title="Soak", title_justify="left")
    table.add_column("figure")
    table.add_column("measured", justify="right")
    for key, value in results.items():
        if key not in ("machine", "bars"):
            table.add_row(
                key, f"{value:,.2f}" if isinstance(value, float) else f"{value:,}" if type(value) is int else str(value)
            )
    return table


def main() -> int:
    parser = argument_parser(__doc__)
    parser.add_argument("--spans", type=float, default=1e7, help="spans in all (1e7); memory needs 1e6 or more")
    parser.add_argument("--threads", type=int, default=4, help="threads that record them (4)")
    parser.add_argument("--core", default="auto", choices=("auto", "c", "python"), help="the ledger's core (auto)")
    options = parser.parse_args()
    if options.spans < 1 or options.threads < 1:
        parser.error("--spans and --threads: at least 1")
    results = {"machine": describe_machine(), **run(options)}
    results["bars"] = judge(BARS, results)
    write_results(results, options, [soak_table(results), bar_table(results["bars"])])
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Measure what recording costs asyncio programs with a thousand to a hundred thousand tasks at once.

Each task opens one span and three more inside it, one after the other, and awaits in each of the three. So all tasks
are suspended inside spans at the same time. Every round runs the same number of tasks in groups of each size, with
recording off and on, in random order. Figures are medians over the rounds, in CPU time of the process. `added` is on
minus off of the same round. `own` is the cost that rlprof reports.
"""

from __future__ import annotations

import asyncio
import gc
import random
from dataclasses import dataclass
from statistics import median
from time import process_time
from typing import Any

from _common import Bar, Options, conclude, describe_machine, empty_table, progress
from rich.table import Table

from rlprof import Profiler

BARS = (
    Bar("largest_ratio", "<=", 2.0),
    Bar("growth", "<=", 1.2),
    Bar("own_over_added_least", ">=", 0.5),
    Bar("own_over_added_most", "<=", 1.5),
    Bar("stop_s", "<=", 1.0, " s"),
)
SPANS = 4


@dataclass
class Run:
    """One measurement, per task in us."""

    cpu_us: float
    own_us: float
    stop_s: float


def run_tasks(at_once: int, times: int, on: bool) -> Run:
    profiler = Profiler()
    profile = profiler.profile

    async def task() -> None:
        with profile("episode"):
            for _ in range(SPANS - 1):
                with profile("step"):
                    await asyncio.sleep(0)

    async def main(tasks: int) -> None:
        await asyncio.gather(*(task() for _ in range(tasks)))

    if on:
        profiler.enable()
    asyncio.run(main(100))  # rlprof follows asyncio from here on
    gc.collect()
    began_own = profiler.snapshot().rlprof_ns
    began = process_time()
    for _ in range(times):
        asyncio.run(main(at_once))
    spent = process_time() - began
    own = profiler.snapshot().rlprof_ns - began_own
    began = process_time()
    profiler.disable()
    profiler.snapshot().check()
    tasks = at_once * times
    return Run(spent / tasks * 1e6, own / tasks / 1e3, process_time() - began)


def measure(sizes: list[int], rounds: int) -> dict[int, list[tuple[Run, Run]]]:
    """Pairs of runs, with recording off and on, by the number of tasks at once."""
    pairs: dict[int, list[tuple[Run, Run]]] = {size: [] for size in sizes}
    for done in range(rounds):
        for size in random.sample(sizes, len(sizes)):
            order = random.sample((False, True), 2)
            runs = {on: run_tasks(size, max(sizes) // size, on) for on in order}
            pairs[size].append((runs[False], runs[True]))
        progress(f"{done + 1} of {rounds} rounds")
    return pairs


def evaluate(pairs: dict[int, list[tuple[Run, Run]]]) -> dict[str, Any]:
    sizes = {
        size: {
            "off_us": median(off.cpu_us for off, _ in runs),
            "on_us": median(on.cpu_us for _, on in runs),
            "ratio": median(on.cpu_us / off.cpu_us for off, on in runs),
            "added_us": median(on.cpu_us - off.cpu_us for off, on in runs),
            "own_us": median(on.own_us for _, on in runs),
            "stop_s": median(on.stop_s for _, on in runs),
        }
        for size, runs in pairs.items()
    }
    shares = [figures["own_us"] / figures["added_us"] for figures in sizes.values()]
    ratios = [figures["ratio"] for figures in sizes.values()]
    return {
        "sizes": sizes,
        "largest_ratio": max(ratios),
        "growth": sizes[max(sizes)]["ratio"] / sizes[min(sizes)]["ratio"],
        "own_over_added_least": min(shares),
        "own_over_added_most": max(shares),
        "stop_s": max(figures["stop_s"] for figures in sizes.values()),
    }


def table_of(results: dict[str, Any]) -> Table:
    columns = ("tasks at once", "off", "on", "on / off", "added", "own", "stop, s")
    table = empty_table(f"CPU time per task in us, medians of {results['rounds']} rounds", *columns)
    for size, figures in results["sizes"].items():
        row = (figures[key] for key in ("off_us", "on_us", "ratio", "added_us", "own_us", "stop_s"))
        table.add_row(f"{size:,}", *(f"{figure:.2f}" for figure in row))
    return table


def main() -> None:
    parser = Options(__doc__)
    parser.number("--rounds", 11, "number of rounds")
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000], help="numbers of tasks at once"
    )
    options = parser.parse_args()
    figures = evaluate(measure(options.sizes, options.rounds))
    results = {"machine": describe_machine(), "rounds": options.rounds, **figures}
    conclude(results, BARS, options, table_of(results))


if __name__ == "__main__":
    main()

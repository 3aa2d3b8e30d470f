"""What `rlprof run` costs trainings that know nothing of it, beside other profilers on the same work.

Each training runs in several processes at once: plain, plain again (for the noise), and under rlprof run. They take
turns of 20 to 30 ms, in random order, so that what the machine does meets all of them alike. Where a process has its
memory makes it faster or slower by a percent or two for all its life; so they are started anew many times, in random
order, and after one that is not measured: what is started first is slower than the next by 1.6 %, and than the one
after that by 3 % (ten starts of three plain ones), as if it had to make do with the pages that others left. The
slowdown of a start is the median over its iterations, and what is told is the median over the starts, with its 95 %
interval. Plain is the mean of both plain processes; the noise is the one against the other. The other profilers are
started once.
"""

from __future__ import annotations

import random
import sys
import tempfile
from math import comb, sqrt
from pathlib import Path
from statistics import median
from typing import Any

from _arms import NAMES, running, take_turns, tools
from _common import Bar, argument_parser, bar_table, describe_machine, judge, progress, write_results
from rich.table import Table

BARS = (Bar("slowdown", "<=", 1.01), Bar("worst_slowdown", "<=", 1.02))


def median_of_starts(slowdowns: list[float]) -> dict[str, Any]:
    """Its interval is between two of them, as many from either end as chance allows in 95 % of cases."""
    ordered = sorted(slowdowns)
    tail = 0
    while sum(comb(len(ordered), i) for i in range(tail + 2)) / 2 ** len(ordered) <= 0.025:
        tail += 1
    return {"slowdown": median(ordered), "interval": (ordered[tail], ordered[-1 - tail]), "starts": slowdowns}


def measure(training: str, folder: Path, options: Any) -> dict[str, Any]:
    rlprof = ["-m", "rlprof", "run", "--dir", str(folder / "sessions")]
    plain = [sys.executable]
    commands = {"first": plain, "plain": plain, "plain again": plain, "rlprof": [sys.executable, *rlprof]}
    if options.other:
        commands["other rlprof"] = [options.other, *rlprof]
    recorded = [name for name in commands if "rlprof" in name]
    slowdowns: dict[str, list[float]] = {name: [] for name in ("plain again", *recorded)}
    plain_seconds = []
    for start in range(options.starts):
        measured = ["plain", "plain again", *recorded]
        order = ["first", *random.Random(start).sample(measured, len(measured))]
        with running(training, folder, {name: (commands[name], {}) for name in order}) as arms:
            take_turns([arms[name] for name in order[1:]], options.rounds, seed=start)
        one, other = arms["plain"].seconds, arms["plain again"].seconds
        usual = [sqrt(mine * its) for mine, its in zip(one, other)]
        slowdowns["plain again"].append(median_ratio(other, one))
        for name in recorded:
            slowdowns[name].append(median_ratio(arms[name].seconds, usual))
        plain_seconds.append(median(usual))
        progress(f"{training}, start {start + 1} of {options.starts}: {slowdowns['rlprof'][-1]:.3f}")
    results = {name: median_of_starts(found) for name, found in slowdowns.items()}
    results["plain"] = {"seconds": median(plain_seconds)}
    if options.tool_rounds:
        with running(training, folder, {"plain": ([sys.executable], {}), **tools(folder)}) as arms:
            take_turns(list(arms.values()), options.tool_rounds)
        for name, arm in arms.items():
            if name != "plain":
                results[name] = {"slowdown": median_ratio(arm.seconds, arms["plain"].seconds)}
    return results


def median_ratio(seconds: list[float], others: list[float]) -> float:
    return median(mine / its for mine, its in zip(seconds, others))


def table(results: dict[str, Any]) -> Table:
    shown = Table(title="Slowdown of an iteration", title_justify="left")
    trainings = results["trainings"]
    names = [name for name in next(iter(trainings.values())) if name != "plain"]
    shown.add_column("")
    for training in trainings:
        shown.add_column(training, justify="right")
    for name in names:
        cells = []
        for found in trainings.values():
            low, high = found[name].get("interval", (0, 0))
            cells.append(f"{found[name]['slowdown']:.3f}" + (f" [{low:.3f}, {high:.3f}]" if high else ""))
        shown.add_row(name, *cells)
    return shown


def main() -> int:
    parser = argument_parser(__doc__)
    parser.add_argument("--starts", type=int, default=12, help="of each, plain and under rlprof (12)")
    parser.add_argument("--rounds", type=int, default=12, help="iterations of each a start (12)")
    parser.add_argument(
        "--tool-rounds", type=int, default=15, help="iterations under each other profiler (15; 0: none)"
    )
    parser.add_argument("--other", metavar="PYTHON", help="an interpreter with another version of rlprof, measured too")
    parser.add_argument("--training", choices=NAMES, action="append", help="only this one; may be given again")
    options = parser.parse_args()
    results: dict[str, Any] = {"machine": describe_machine(), "trainings": {}}
    for training in options.training or NAMES:
        with tempfile.TemporaryDirectory() as folder:
            results["trainings"][training] = measure(training, Path(folder), options)
    slowdowns = [found["rlprof"]["slowdown"] for found in results["trainings"].values()]
    results["slowdown"] = median(slowdowns)
    results["worst_slowdown"] = max(slowdowns)
    results["noise"] = median(found["plain again"]["slowdown"] for found in results["trainings"].values())
    results["bars"] = judge(BARS, results)
    write_results(results, options, [table(results), bar_table(results["bars"])])
    return 0


if __name__ == "__main__":
    sys.exit(main())

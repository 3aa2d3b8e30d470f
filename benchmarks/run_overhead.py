"""Measure how much `rlprof run` and other profilers slow down trainings that were not edited.

Each training runs in several processes: plain, plain again (for the noise), and under `rlprof run`. Only one process
runs at a time, for 20 to 30 ms, in random order, so that disturbances of the machine affect all of them alike. The
place of its memory makes a process faster or slower by one or two percent as long as it lives. So the processes are
started many times, in random order, after one process that is not measured: the process that is started first is
slower than the second by 1.6 % and than the third by 3 % (ten starts of three plain processes).

The slowdown of a start is the median over its iterations. The reported slowdown is the median over the starts, with its
95 % interval. It is relative to the mean of both plain processes. The noise is one plain process relative to the other.
The other profilers are started once.
"""

from __future__ import annotations

import random
import sys
from math import comb, sqrt
from pathlib import Path
from statistics import median
from typing import Any

from _arms import NAMES, running, take_turns, tools
from _common import Bar, Options, conclude, empty_table, measure_each, progress
from rich.table import Table

BARS = (Bar("slowdown", "<=", 1.01), Bar("worst_slowdown", "<=", 1.02))


def median_of_starts(slowdowns: list[float]) -> dict[str, Any]:
    """The median, with a distribution-free 95 % interval between two order statistics."""
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
    trainings = results["trainings"]
    names = [name for name in next(iter(trainings.values())) if name != "plain"]
    shown = empty_table("Slowdown of an iteration", "", *trainings)
    for name in names:
        cells = []
        for found in trainings.values():
            low, high = found[name].get("interval", (0, 0))
            cells.append(f"{found[name]['slowdown']:.3f}" + (f" [{low:.3f}, {high:.3f}]" if high else ""))
        shown.add_row(name, *cells)
    return shown


def main() -> None:
    parser = Options(__doc__)
    parser.number("--starts", 12, "starts of each training, plain and under rlprof")
    parser.number("--rounds", 12, "iterations per start")
    parser.number("--tool-rounds", 15, "iterations under each other profiler, 0 for none")
    parser.add_argument(
        "--other", metavar="PYTHON", help="interpreter with another version of rlprof, which is measured, too"
    )
    parser.only("training", NAMES)
    options = parser.parse_args()
    results = measure_each(options.training or NAMES, measure, options)
    slowdowns = [found["rlprof"]["slowdown"] for found in results["trainings"].values()]
    results["slowdown"] = median(slowdowns)
    results["worst_slowdown"] = max(slowdowns)
    results["noise"] = median(found["plain again"]["slowdown"] for found in results["trainings"].values())
    conclude(results, BARS, options, table(results))


if __name__ == "__main__":
    main()

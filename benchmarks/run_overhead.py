"""What `rlprof run` costs trainings that know nothing of it, beside other profilers on the same work.

Each training runs in several processes at once: plain, plain again (for the noise), under rlprof run, and under the
other profilers. They take turns, one iteration each, in random order, so that what the machine does meets all of them
alike.
A slowdown is the median of the ratios of neighbouring iterations.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from statistics import NormalDist, median
from typing import Any

from _arms import NAMES, Arm, take_turns, tools
from _common import Bar, argument_parser, bar_table, describe_machine, judge, progress, write_results
from rich.table import Table

BARS = (Bar("slowdown", "<=", 1.01), Bar("worst_slowdown", "<=", 1.02))


def interval(ratios: list[float]) -> tuple[float, float]:
    """Of the median, at 95 %, from the order of the ratios alone."""
    ordered = sorted(ratios)
    half = NormalDist().inv_cdf(0.975) * len(ordered) ** 0.5 / 2
    low, high = round(len(ordered) / 2 - half), round(len(ordered) / 2 + half) - 1
    return ordered[max(0, low)], ordered[min(len(ordered) - 1, high)]


def compare(arm: Arm, plain: Arm) -> dict[str, Any]:
    ratios = [mine / its for mine, its in zip(arm.seconds, plain.seconds)]
    return {"slowdown": median(ratios), "interval": interval(ratios), "iterations": len(ratios)}


def measure(training: str, folder: Path, rounds: int, tool_rounds: int) -> dict[str, Any]:
    plain = [sys.executable]
    rlprof = [sys.executable, "-m", "rlprof", "run", "--dir", str(folder / "sessions")]
    arms: list[Arm] = []
    try:
        for name, before in (("plain", plain), ("plain again", plain), ("rlprof", rlprof)):
            arms.append(Arm.start(name, before, training, folder, {}))
        take_turns(arms, rounds)
        results = {arm.name: compare(arm, arms[0]) for arm in arms[1:]}
        results["plain"] = {"seconds": median(arms[0].seconds)}
        for name, (before, environment) in tools(folder).items():
            arms.append(Arm.start(name, before, training, folder, environment))
        for arm in arms:
            arm.seconds.clear()
        if tool_rounds:
            take_turns([arms[0], *arms[3:]], tool_rounds)
            results |= {arm.name: compare(arm, arms[0]) for arm in arms[3:]}
    finally:
        for arm in arms:
            arm.stop()
    return results


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
            low, high = found[name]["interval"]
            cells.append(f"{found[name]['slowdown']:.3f} [{low:.3f}, {high:.3f}]")
        shown.add_row(name, *cells)
    return shown


def main() -> int:
    parser = argument_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=150, help="iterations of each, plain and under rlprof (150)")
    parser.add_argument("--tool-rounds", type=int, default=15, help="iterations under each other profiler (15)")
    parser.add_argument("--training", choices=NAMES, action="append", help="only this one; may be given again")
    options = parser.parse_args()
    results: dict[str, Any] = {"machine": describe_machine(), "trainings": {}}
    for training in options.training or NAMES:
        with tempfile.TemporaryDirectory() as folder:
            progress(f"{training}: {options.rounds} rounds")
            results["trainings"][training] = measure(training, Path(folder), options.rounds, options.tool_rounds)
    slowdowns = [found["rlprof"]["slowdown"] for found in results["trainings"].values()]
    results["slowdown"] = median(slowdowns)
    results["worst_slowdown"] = max(slowdowns)
    results["noise"] = median(found["plain again"]["slowdown"] for found in results["trainings"].values())
    results["bars"] = judge(BARS, results)
    write_results(results, options, [table(results), bar_table(results["bars"])])
    return 0


if __name__ == "__main__":
    sys.exit(main())

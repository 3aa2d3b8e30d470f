"""Measure how often `rlprof compare` calls equal trainings different.

The same training is compared with itself, in hundreds of pairs of processes, while other programs come and go on the
same cores. Successive pairs are grouped into comparisons as a user would have made them: of five pairs, of ten pairs,
and of as many as the command itself takes before it stops. Each verdict of "faster" or "slower" is wrong, and so is
each marked component. The bound is the upper end of a one-sided 95 % interval (Clopper-Pearson).

The command itself takes more pairs, so that there are few such comparisons. Its error rate is therefore also computed
from resampled pairs: in another order and, as both sides are equal, some of them with swapped sides. The last row is
the usual method: a Mann-Whitney test on the iterations of two ordinary runs in a row.
"""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from _common import Bar, Options, conclude, describe_machine, empty_table, progress
from rich.table import Table
from scipy.stats import binomtest, mannwhitneyu

from rlprof.analysis.comparison import Comparison, MeasuredPair, compare
from rlprof.analysis.components import component_of
from rlprof.analysis.work import Measured
from rlprof.compare import small_ppo
from rlprof.compare.paired import ALPHA_PER_LOOK, LEAST_PAIRS, MOST, MOST_PAIRS, Plan, is_narrow
from rlprof.experiment.pairs import Pair, measured, run_pair

TRAINING = f"run {small_ppo.__file__} --envs 32 --steps 32"
DRAWS = 1000
BUSY_SECONDS = 4.0
QUIET_SECONDS = 6.0
"""Mean lengths. Both are drawn anew each time, so that nothing can fall into step with them."""

_BURN = "import time\nend = time.monotonic() + {seconds}\nwhile time.monotonic() < end:\n    sum(range(10000))\n"
BARS = (
    Bar("process_pairs", ">=", 100),
    Bar("false_positives", "<=", 0.05),
    Bar("upper_bound", "<=", 0.10),
)


class ComingAndGoing:
    """A context manager that keeps a number of programs coming and going. Each computes for a while and pauses for a
    while."""

    def __init__(self, programs: int) -> None:
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._come_and_go, args=(seed,)) for seed in range(programs)]

    def __enter__(self) -> ComingAndGoing:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _come_and_go(self, seed: int) -> None:
        chance = random.Random(seed)
        while not self._over.wait(chance.expovariate(1 / QUIET_SECONDS)):
            seconds = chance.expovariate(1 / BUSY_SECONDS)
            program = subprocess.Popen([sys.executable, "-c", _BURN.format(seconds=seconds)])
            if self._over.wait(seconds):
                program.terminate()
            program.wait()


def comparisons(pairs: Sequence[MeasuredPair], size: int) -> Iterator[Comparison]:
    """Comparisons of `size` successive pairs each, or of as many pairs as the command itself takes if size is 0."""
    begin = 0
    for end in range(1, len(pairs) + 1):
        found = pairs[begin:end]
        if len(found) < (size or LEAST_PAIRS):
            continue
        compared = compare("A", "A", found, ALPHA_PER_LOOK)
        if size or len(found) >= MOST_PAIRS or is_narrow(compared, Plan("", "").width):
            yield compared
            begin = end


def resampled(logs: Sequence[float]) -> dict[str, Any]:
    """Verdicts of the command on resampled pairs."""
    chance = random.Random(1)
    wrong = 0
    for _ in range(DRAWS):
        drawn = [log * chance.choice((-1, 1)) for log in chance.sample(logs, MOST_PAIRS)]
        wrong += next(comparisons([_planted(log) for log in drawn], 0)).speedup.beyond_zero
    return {"comparisons": DRAWS, "false_positives": wrong / DRAWS}


def _planted(log: float) -> MeasuredPair:
    a, b = (Measured(wall, wall, 1.0, {}) for wall in (math.exp(log), 1.0))
    return MeasuredPair(a, b)


def judged(found: Sequence[Comparison]) -> dict[str, Any]:
    wrong = sum(one.speedup.beyond_zero for one in found)
    marked = sum(any(component.significant for component in one.components) for one in found)
    by_cpu = sum(one.cpu is not None and one.cpu.beyond_zero for one in found)
    return {
        "comparisons": len(found),
        "pairs_each": sum(one.pairs for one in found) / len(found),
        "false_positives": wrong / len(found),
        "upper_bound": upper_bound(wrong, len(found)),
        "a_component_marked": marked / len(found),
        "by_cpu_time": by_cpu / len(found),
        "half_width": sum(half_width(one) for one in found) / len(found),
    }


def half_width(one: Comparison) -> float:
    return ((one.speedup.high or 0.0) - (one.speedup.low or 0.0)) / 2


def upper_bound(wrong: int, of: int) -> float:
    return float(binomtest(wrong, of, alternative="less").proportion_ci(0.95, "exact").high)


def usual_way(pairs: Sequence[Pair]) -> dict[str, Any]:
    """A test on the iterations of two runs, one after the other: A of one pair and A of the next."""
    runs = [[block.a.wall_ns for block in pair.blocks] for pair in pairs]
    tried = list(zip(runs[::2], runs[1::2]))
    wrong = sum(mannwhitneyu(one, other).pvalue < 0.05 for one, other in tried)
    return {"comparisons": len(tried), "false_positives": wrong / len(tried)}


def main() -> None:
    parser = Options(__doc__)
    parser.number("--pairs", 500, "pairs of processes")
    parser.number("--iterations", 20, "least number of iterations per process")
    parser.number("--load", 2, "number of other programs that come and go")
    options = parser.parse_args()
    if options.pairs < 2 * MOST_PAIRS:
        parser.error(f"--pairs must be at least {2 * MOST_PAIRS}, so that each rule makes a comparison")
    os.environ["OMP_NUM_THREADS"] = "1"
    chance = random.Random()
    pairs: list[Pair] = []
    machine = describe_machine()
    with ComingAndGoing(options.load):
        while len(pairs) < options.pairs:
            pairs.append(run_pair((TRAINING, TRAINING), options.iterations, chance, most=MOST * options.iterations))
            if len(pairs) % 10 == 0:
                progress(f"{len(pairs)} of {options.pairs} pairs")
    found = [measured(pair, component_of({})) for pair in pairs]
    rules = {"5": 5, "10": 10, "as the command stops": 0}
    by_rule = {name: judged(list(comparisons(found, size))) for name, size in rules.items()}
    logs = compare("A", "A", found, ALPHA_PER_LOOK).logs
    by_rule["as the command stops"]["resampled"] = resampled(logs)
    results: dict[str, Any] = {
        "machine": machine,
        "training": "small_ppo.py against itself",
        "iterations": options.iterations,
        "programs_beside_it": options.load,
        "process_pairs": len(pairs),
        "false_positives": by_rule["5"]["false_positives"],
        "upper_bound": by_rule["5"]["upper_bound"],
        "by_rule": by_rule,
        "usual_way": usual_way(pairs),
        "log_ratios": [round(one, 5) for one in logs],
    }
    conclude(results, BARS, options, table(results))


def table(results: dict[str, Any]) -> Table:
    columns = ("pairs", "comparisons", "wrong", "bound", "component wrong", "CPU time wrong", "half-width")
    shown = empty_table("Equal trainings called different", *columns)
    for name, rule in results["by_rule"].items():
        shares = ("false_positives", "upper_bound", "a_component_marked", "by_cpu_time", "half_width")
        shown.add_row(name, str(rule["comparisons"]), *(f"{100 * rule[key]:.1f} %" for key in shares))
    again = results["by_rule"]["as the command stops"]["resampled"]
    for name, found in (("the same, resampled", again), ("two runs, Mann-Whitney test", results["usual_way"])):
        shown.add_row(name, str(found["comparisons"]), f"{100 * found['false_positives']:.1f} %")
    return shown


if __name__ == "__main__":
    main()

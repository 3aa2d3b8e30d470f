"""Measure how often `rlprof compare` finds a small change, and the part of the training that it is in.

A PPO is compared with itself with 5 % more work in one of its parts. Each run is one comparison as a user would make
it: from the start, by the rules of the command, for at most five minutes. The change is found if its part is marked as
slower. Any other marked part is blamed wrongly.
"""

from __future__ import annotations

import os
import time
from typing import Any

from _common import Bar, Options, conclude, describe_machine, empty_table, progress
from rich.table import Table

from rlprof.analysis.components import component_of
from rlprof.compare import small_ppo
from rlprof.compare.paired import Plan, compare_live

TRAINING = f"run {small_ppo.__file__} --envs 32 --steps 32"
PLANTED = ("loss_forward", "policy_forward", "backward", "env_step")
SHARE = 0.05
SECONDS = 300.0
BARS = (
    Bar("found", ">=", 0.80),
    Bar("blamed_wrongly", "<=", 0.05),
    Bar("longest_seconds", "<=", SECONDS, " s"),
)


def run(part: str, pairs: int, iterations: int, width: float) -> dict[str, Any]:
    began = time.monotonic()
    slower = f"{TRAINING} --slower {part}={SHARE}"
    plan = Plan(TRAINING, slower, pairs=pairs, blocks=iterations, seconds=SECONDS, width=width)
    found = compare_live(plan, component_of({}))
    marked = {one.name: one for one in found.components if one.significant}
    planted = next(one for one in found.components if one.name == part)
    assert planted.speedup is not None
    return {
        "part": part,
        "pairs": found.pairs,
        "seconds": round(time.monotonic() - began, 1),
        "found": part in marked and planted.speedup.estimate < 0,
        "slower_by": -planted.speedup.estimate,
        "interval": [planted.speedup.low, planted.speedup.high],
        "blamed_wrongly": sorted(set(marked) - {part}),
        "whole": found.speedup.estimate,
        "verdict": found.verdict,
    }


def table(results: dict[str, Any]) -> Table:
    columns = ("part", "pairs", "seconds", "found", "slower by", "verdict", "blamed wrongly")
    shown = empty_table("5 % more work in one part", *columns, left=("found", "verdict", "blamed wrongly"))
    for one in results["runs"]:
        shown.add_row(
            one["part"], str(one["pairs"]), str(one["seconds"]), "yes" if one["found"] else "no",
            f"{100 * one['slower_by']:.1f} %", one["verdict"], ", ".join(one["blamed_wrongly"]),
        )  # fmt: skip
    return shown


def main() -> None:
    parser = Options(__doc__)
    parser.number("--runs", 20, "number of comparisons")
    parser.number("--pairs", 70, "most pairs per comparison")
    parser.number("--iterations", 20, "least number of iterations per process")
    parser.number("--precision", 0.004, "half-width of the interval at which a comparison stops")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    results: dict[str, Any] = {"machine": describe_machine(), "training": "small_ppo.py", "planted": SHARE, "runs": []}
    for number in range(options.runs):
        one = run(PLANTED[number % len(PLANTED)], options.pairs, options.iterations, options.precision)
        results["runs"].append(one)
        progress(f"{number + 1} of {options.runs}: {one}")
    runs = results["runs"]
    results["found"] = sum(one["found"] for one in runs) / len(runs)
    results["blamed_wrongly"] = sum(bool(one["blamed_wrongly"]) for one in runs) / len(runs)
    results["longest_seconds"] = max(one["seconds"] for one in runs)
    conclude(results, BARS, options, table(results))


if __name__ == "__main__":
    main()

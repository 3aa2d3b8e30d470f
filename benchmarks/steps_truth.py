"""Check the steps, iterations and steps per second that `rlprof run` reports against what trainings count themselves.

Each program in `counted/` counts its training steps and iterations and measures its own time; one also measures the
wall and CPU time of its phases. Each program runs once under rlprof, unchanged. The counts must be equal. Steps that
only fill a buffer, and evaluations, do not count as training. The program and rlprof measure the same run, so a busy
machine does not change the comparison.
"""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path
from typing import Any

from _common import Bar, Options, conclude, describe_machine, empty_table, progress, run_recorded
from rich.table import Table

from rlprof.analysis.facts import Facts

BARS = (
    Bar("programs", ">=", 12),
    Bar("wrong_counts", "==", 0),
    Bar("worst_rate_error", "<=", 0.02),
    Bar("worst_cpu_error", "<=", 5, " points"),
)
COUNTED = Path(__file__).parent / "counted"
PROGRAMS = {
    "PPO by hand, evaluated": ("ppo.py",),
    "DQN by hand, prefilled, evaluated": ("off_policy.py",),
    "SAC by hand, prefilled, evaluated": ("off_policy.py", "--sac"),
    "SB3 PPO, fork": ("sb3.py", "fork"),
    "SB3 PPO, forkserver": ("sb3.py", "forkserver"),
    "SB3 PPO, spawn": ("sb3.py", "spawn"),
    "AsyncVectorEnv, fork": ("async_vector.py", "fork"),
    "AsyncVectorEnv, spawn": ("async_vector.py", "spawn"),
    "EnvPool": ("envpool_ppo.py",),
    "step from a mixin": ("single.py", "mixin"),
    "an environment per episode": ("single.py", "recreated"),
    "a list of environments": ("single.py", "several"),
    "tianshou PPO": ("tianshou_ppo.py",),
    "skrl PPO": ("skrl_ppo.py",),
    "learner in a child, sleeps": ("child.py",),
    "learner in a child, queue": ("child.py", "--queue"),
    "joblib": ("joblib_search.py",),
}
NEEDS = {
    "envpool_ppo.py": "envpool",
    "joblib_search.py": "joblib",
    "skrl_ppo.py": "skrl",
    "tianshou_ppo.py": "tianshou",
}


def compare(facts: Facts, own: dict[str, Any]) -> dict[str, Any]:
    found = facts.progress
    rate = own["steps"] / own["seconds"]
    cpu = {}
    for name, (wall, cpu_seconds) in own["phases"].items():
        rows = [row for row in facts.breakdown.top if row.operation == name]
        reported = 100 * sum(row.subtree_cpu_ns or 0 for row in rows) / max(1, sum(row.wall_ns for row in rows))
        cpu[name] = {"own": 100 * cpu_seconds / wall, "rlprof": reported}
    return {
        "steps": {"own": own["steps"], "rlprof": found.steps},
        "iterations": {"own": own["iterations"], "rlprof": found.iterations},
        "steps_per_second": {"own": rate, "rlprof": found.steps_per_second},
        "rate_error": (found.steps_per_second or 0) / rate - 1,
        "cpu_percent": cpu,
    }


def table(results: dict[str, Any]) -> Table:
    columns = ("program", "steps", "rlprof", "iterations", "rlprof", "steps/s", "rlprof", "error")
    shown = empty_table("Counts of the programs and of rlprof", *columns)
    for name, found in results["trainings"].items():
        counts = [f"{found[key][who]:,}" for key in ("steps", "iterations") for who in ("own", "rlprof")]
        rates = [f"{found['steps_per_second'][who] or 0:,.1f}" for who in ("own", "rlprof")]
        shown.add_row(name, *counts, *rates, f"{100 * found['rate_error']:+.2f} %")
    return shown


def wrong_counts(found: dict[str, Any]) -> int:
    return sum(found[key]["own"] != found[key]["rlprof"] for key in ("steps", "iterations"))


def main() -> None:
    parser = Options(__doc__)
    parser.add_argument(
        "--program", action="append", metavar="TEXT", help="run only programs whose name contains TEXT (repeatable)"
    )
    options = parser.parse_args()
    results: dict[str, Any] = {"machine": describe_machine(), "trainings": {}, "not_installed": []}
    for name, words in PROGRAMS.items():
        if options.program and not any(text in name for text in options.program):
            continue
        needs = NEEDS.get(words[0])
        if needs and importlib.util.find_spec(needs) is None:
            results["not_installed"].append(needs)
            progress(f"{name}: skipped, because {needs} is not installed. Try: pip install '.[counted]'")
            continue
        with tempfile.TemporaryDirectory() as folder:
            facts, own = run_recorded(COUNTED / words[0], words[1:], Path(folder), "OWN")
        found = results["trainings"][name] = compare(facts, own)
        progress(f"{name}: {wrong_counts(found)} wrong counts, steps/s {100 * found['rate_error']:+.2f} %")
    every = results["trainings"].values()
    results["programs"] = len(every)
    results["wrong_counts"] = sum(map(wrong_counts, every))
    results["worst_rate_error"] = max(abs(found["rate_error"]) for found in every)
    points = [abs(cpu["own"] - cpu["rlprof"]) for found in every for cpu in found["cpu_percent"].values()]
    results["worst_cpu_error"] = max(points, default=None)
    conclude(results, BARS, options, table(results))


if __name__ == "__main__":
    main()

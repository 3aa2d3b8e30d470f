"""Are the steps, iterations and steps per second that `rlprof run` reports those that the training counts itself?

Each program in `counted/` counts its training steps and iterations and times itself; one also takes the wall and CPU
time of its phases. It runs once under rlprof, as it is, and both accounts are compared: counts must be equal. What only
fills a buffer, and what evaluates, is not training. The program and rlprof measure the same run, so a busy machine does
not change the comparison.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from _common import Bar, argument_parser, bar_table, describe_machine, judge, progress, write_results
from rich.table import Table

from rlprof.analysis.facts import Facts
from rlprof.analysis.load import load_facts

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


def run(words: tuple[str, ...], folder: Path) -> tuple[Facts, dict[str, Any]]:
    """One run under rlprof: what rlprof found, and what the program counted itself."""
    own, sessions = folder / "own.json", folder / "sessions"
    script, *arguments = words
    recorded = [sys.executable, "-m", "rlprof", "run", "--quiet", "--dir", str(sessions)]
    command = [*recorded, str(COUNTED / script), *arguments]
    environment = {**os.environ, "OWN": str(own), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode or not own.exists():
        raise RuntimeError(f"{' '.join(words)} failed: {done.stderr[-2000:]}")
    (session,) = sessions.iterdir()
    return load_facts(str(session)), json.loads(own.read_text())


def compare(facts: Facts, own: dict[str, Any]) -> dict[str, Any]:
    found = facts.progress
    rate = own["steps"] / own["seconds"]
    cpu = {}
    for name, (wall, cpu_seconds) in own["phases"].items():
        rows = [row for row in facts.breakdown.top if row.operation == name]
        said = 100 * sum(row.subtree_cpu_ns or 0 for row in rows) / max(1, sum(row.wall_ns for row in rows))
        cpu[name] = {"own": 100 * cpu_seconds / wall, "rlprof": said}
    return {
        "steps": {"own": own["steps"], "rlprof": found.steps},
        "iterations": {"own": own["iterations"], "rlprof": found.iterations},
        "steps_per_second": {"own": rate, "rlprof": found.steps_per_second},
        "rate_error": (found.steps_per_second or 0) / rate - 1,
        "cpu_percent": cpu,
    }


def table(results: dict[str, Any]) -> Table:
    shown = Table(title="What programs count, and what rlprof says of them", title_justify="left")
    for column in ("program", "steps", "rlprof", "iterations", "rlprof", "steps/s", "rlprof", "off by"):
        shown.add_column(column, justify="left" if column == "program" else "right")
    for name, found in results["trainings"].items():
        counts = [f"{found[key][who]:,}" for key in ("steps", "iterations") for who in ("own", "rlprof")]
        rates = [f"{found['steps_per_second'][who] or 0:,.1f}" for who in ("own", "rlprof")]
        shown.add_row(name, *counts, *rates, f"{100 * found['rate_error']:+.2f} %")
    return shown


def wrong_counts(found: dict[str, Any]) -> int:
    return sum(found[key]["own"] != found[key]["rlprof"] for key in ("steps", "iterations"))


def main() -> int:
    parser = argument_parser(__doc__)
    parser.add_argument("--program", action="append", metavar="TEXT", help="only programs whose name has TEXT in it")
    options = parser.parse_args()
    results: dict[str, Any] = {"machine": describe_machine(), "trainings": {}, "not_installed": []}
    for name, words in PROGRAMS.items():
        if options.program and not any(text in name for text in options.program):
            continue
        needs = NEEDS.get(words[0])
        if needs and importlib.util.find_spec(needs) is None:
            results["not_installed"].append(needs)
            progress(f"{name}: left out, {needs} is not installed: pip install '.[counted]'")
            continue
        with tempfile.TemporaryDirectory() as folder:
            found = results["trainings"][name] = compare(*run(words, Path(folder)))
        progress(f"{name}: {wrong_counts(found)} counts wrong, steps/s {100 * found['rate_error']:+.2f} %")
    every = results["trainings"].values()
    results["programs"] = len(every)
    results["wrong_counts"] = sum(map(wrong_counts, every))
    results["worst_rate_error"] = max(abs(found["rate_error"]) for found in every)
    points = [abs(cpu["own"] - cpu["rlprof"]) for found in every for cpu in found["cpu_percent"].values()]
    results["worst_cpu_error"] = max(points, default=None)
    results["bars"] = judge(BARS, results)
    write_results(results, options, [table(results), bar_table(results["bars"])])
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Does `rlprof run` find what a training does, without an edit?

Each training runs under rlprof run as it is, for how much stays unattributed; then with waits of 10 ms planted in its
environment's step, its policy's forward pass, its advantage loop and its optimizer. How much longer that operation
takes than without the waits is compared between rlprof's account and the training's own stamps around it. That is more
than the waits themselves, which are told beside it: what comes after 10 ms of waiting runs with cold caches, with or
without a profiler (a forward pass of 60 us takes 300 to 400 then).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from _arms import NAMES, TRAININGS
from _common import Bar, argument_parser, bar_table, describe_machine, judge, progress, write_results
from rich.table import Table

from rlprof.analysis.facts import Facts
from rlprof.analysis.load import load_facts

BARS = (Bar("unattributed", "<=", 0.05), Bar("worst_error", "<=", 0.02))
OPERATIONS = {
    "env": "env_step", "policy": "policy_forward", "advantage": "advantage", "optimizer": "optimizer_step",
}  # fmt: skip
SHORT = ("--iterations", "3", "--steps", "32")


def run(training: str, folder: Path, *arguments: str) -> tuple[Facts, dict[str, Any]]:
    """One run under rlprof: what it found, and what the training says it planted."""
    sessions = folder / f"sessions-{len(list(folder.iterdir()))}"
    truth = sessions.with_suffix(".json")
    script = str(TRAININGS / f"{training}.py")
    command = [sys.executable, "-m", "rlprof", "run", "--dir", str(sessions), script, *arguments]
    environment = {**os.environ, "PLANTED": str(truth), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{training} {' '.join(arguments)} failed: {done.stderr[-2000:]}")
    (session,) = sessions.iterdir()
    return load_facts(str(session)), json.loads(truth.read_text())


def taken(facts: Facts, operation: str) -> tuple[float, int]:
    """Seconds with all it called, and calls."""
    found = next((item for item in facts.operations if item.operation == operation), None)
    return (found.busy_ns / 1e9, found.calls) if found is not None else (0.0, 0)


def longer(usual: tuple[float, int], slow: tuple[float, int]) -> float:
    """Seconds that so many calls took longer than as many usual ones."""
    return slow[0] - usual[0] * (slow[1] / usual[1] if usual[1] else 0)


def measure(training: str, folder: Path, iterations: int) -> dict[str, Any]:
    facts, _ = run(training, folder, "--iterations", str(iterations))
    unattributed = sum(row.ledger_ns for row in facts.breakdown.rows if row.category == "unattributed")
    results: dict[str, Any] = {
        "unattributed": unattributed / facts.breakdown.wall_ns,
        "iterations": facts.progress.iterations,
        "steps": facts.progress.steps,
        "wall_seconds": facts.breakdown.wall_ns / 1e9,
    }
    usual, usual_truth = run(training, folder, *SHORT)
    for place, operation in OPERATIONS.items():
        slow, truth = run(training, folder, *SHORT, "--plant", place)
        found = longer(taken(usual, operation), taken(slow, operation))
        planted = longer(*((said["taken"][place], said["calls"][place]) for said in (usual_truth, truth)))
        results[place] = {
            "waited_seconds": truth["waited"],
            "planted_seconds": planted,
            "found_seconds": found,
            "error": found / planted - 1,
        }
        waited = truth["waited"]
        progress(f"{training}: {operation} took {planted:.3f} s longer ({waited:.3f} s of waits), found {found:.3f} s")
    return results


def table(results: dict[str, Any]) -> Table:
    shown = Table(title="Planted and found", title_justify="left")
    for column in ("training", "unattributed", *OPERATIONS):
        shown.add_column(column, justify="left" if column == "training" else "right")
    for training, found in results["trainings"].items():
        errors = [f"{100 * found[place]['error']:+.2f} %" for place in OPERATIONS]
        shown.add_row(training, f"{100 * found['unattributed']:.2f} %", *errors)
    return shown


def main() -> int:
    parser = argument_parser(__doc__)
    parser.add_argument("--iterations", type=int, default=20, help="of the run that shows what is unattributed (20)")
    parser.add_argument("--training", choices=NAMES, action="append", help="only this one; may be given again")
    options = parser.parse_args()
    results: dict[str, Any] = {"machine": describe_machine(), "trainings": {}}
    for training in options.training or NAMES:
        with tempfile.TemporaryDirectory() as folder:
            results["trainings"][training] = measure(training, Path(folder), options.iterations)
    found = results["trainings"].values()
    results["unattributed"] = max(training["unattributed"] for training in found)
    results["worst_error"] = max(abs(training[place]["error"]) for training in found for place in OPERATIONS)
    results["bars"] = judge(BARS, results)
    write_results(results, options, [table(results), bar_table(results["bars"])])
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Measure whether `rlprof run` attributes the time of unedited trainings to the right operations.

Each training first runs unchanged under `rlprof run`, which shows how much time stays unattributed. It then runs with
delays of 10 ms planted in the step of the environment, the forward pass of the policy, the advantage loop or the
optimizer. The increase of that operation's time in rlprof's account is compared with the increase between the
training's own timestamps. The increase is larger than the planted delays, which are reported, too: after 10 ms of
waiting, code runs with cold caches, with or without a profiler (a forward pass of 60 us then takes 300 to 400 us).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from _arms import NAMES, TRAININGS
from _common import Bar, Options, conclude, empty_table, measure_each, progress, run_recorded
from rich.table import Table

from rlprof.analysis.facts import Facts

BARS = (Bar("unattributed", "<=", 0.05), Bar("worst_error", "<=", 0.02))
OPERATIONS = {
    "env": "env_step", "policy": "policy_forward", "advantage": "advantage", "optimizer": "optimizer_step",
}  # fmt: skip
SHORT = ("--iterations", "3", "--steps", "32")


def taken(facts: Facts, operation: str) -> tuple[float, int]:
    """Seconds in an operation, including the operations it calls, and its number of calls."""
    found = next((item for item in facts.operations if item.operation == operation), None)
    return (found.busy_ns / 1e9, found.calls) if found is not None else (0.0, 0)


def longer(usual: tuple[float, int], slow: tuple[float, int]) -> float:
    """How many seconds the slow calls took longer than the same number of usual calls."""
    return slow[0] - usual[0] * (slow[1] / usual[1] if usual[1] else 0)


def measure(training: str, folder: Path, options: Any) -> dict[str, Any]:
    script = TRAININGS / f"{training}.py"
    facts, _ = run_recorded(script, ("--iterations", str(options.iterations)), folder, "PLANTED")
    unattributed = sum(row.ledger_ns for row in facts.breakdown.rows if row.category == "unattributed")
    results: dict[str, Any] = {
        "unattributed": unattributed / facts.breakdown.training_ns,
        "iterations": facts.progress.iterations,
        "steps": facts.progress.steps,
        "wall_seconds": facts.breakdown.wall_ns / 1e9,
    }
    usual, usual_truth = run_recorded(script, SHORT, folder, "PLANTED")
    for place, operation in OPERATIONS.items():
        slow, truth = run_recorded(script, (*SHORT, "--plant", place), folder, "PLANTED")
        found = longer(taken(usual, operation), taken(slow, operation))
        planted = longer(*((own["taken"][place], own["calls"][place]) for own in (usual_truth, truth)))
        results[place] = {
            "waited_seconds": truth["waited"],
            "planted_seconds": planted,
            "found_seconds": found,
            "error": found / planted - 1,
        }
        waited = truth["waited"]
        progress(
            f"{training}: {operation} took {planted:.3f} s longer (delays: {waited:.3f} s), rlprof found {found:.3f} s"
        )
    return results


def table(results: dict[str, Any]) -> Table:
    shown = empty_table("Unattributed time, and error of planted delays", "training", "unattributed", *OPERATIONS)
    for training, found in results["trainings"].items():
        errors = [f"{100 * found[place]['error']:+.2f} %" for place in OPERATIONS]
        shown.add_row(training, f"{100 * found['unattributed']:.2f} %", *errors)
    return shown


def main() -> None:
    parser = Options(__doc__)
    parser.number("--iterations", 20, "iterations of the run that shows unattributed time")
    parser.only("training", NAMES)
    options = parser.parse_args()
    results = measure_each(options.training or NAMES, measure, options)
    found = results["trainings"].values()
    results["unattributed"] = max(training["unattributed"] for training in found)
    results["worst_error"] = max(abs(training[place]["error"]) for training in found for place in OPERATIONS)
    conclude(results, BARS, options, table(results))


if __name__ == "__main__":
    main()

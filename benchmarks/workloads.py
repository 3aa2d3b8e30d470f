"""Measure where the time of the reference trainings goes, how fast they should be, and how much their cures bring.

Each training runs once unchanged, with `--expect`. Then pairs of new processes, without and with the cure, alternate
iteration by iteration. The effect of the cure is a ratio within a pair, with an interval over the pairs.
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from _common import Bar, Options, conclude, describe_machine, empty_table, progress

from rlprof.analysis.comparison import compare
from rlprof.analysis.components import component_of, components
from rlprof.analysis.load import load_facts
from rlprof.experiment.pairs import measured, run_pair
from rlprof.workloads import WORKLOADS, find_workload

CURES = {
    "petri": (
        ("turbo", "--no-turbo", "--turbo", "net_step"),
        ("envs", "--envs 1", "--envs 16", "env_step"),
    ),
    "ricochet": (("cached_rendering", "--no-cached-rendering", "--cached-rendering", "env_rgb_rendering"),),
    "distill": (
        ("batched_teacher", "--no-batched-teacher", "--batched-teacher", "agent_calls"),
        ("preallocated", "--no-preallocated", "--preallocated", "stack_and_back"),
    ),
    "morph": (("gather", "--no-experimental-gpu-preload-gather", "--experimental-gpu-preload-gather", "data_loading"),),
    "battle": (("batched_inference", "--no-batched-inference", "--batched-inference", None),),
}
"""The cures of each workload: name, setting without and with the cure, and the operation that should become faster, or
None if its work moves to other operations."""

ROWS = 10
"""Rows of a breakdown without components."""


def train(name: str, folder: Path, more: list[str]) -> dict[str, Any]:
    """Train once, recorded. Returns the accounts, the progress of learning, and the isolated speed of the parts."""
    command = [sys.executable, "-m", "rlprof", "train", name, "--expect", "--no-progress", "--dir", str(folder)]
    done = subprocess.run([*command, *more], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr[-2000:]}")
    (session,) = folder.iterdir()
    facts = load_facts(session)
    found = components(facts.breakdown, find_workload(name).components)
    learned = re.search(r"steps, (.+) (\S+) at first, (\S+) at the end", done.stdout)
    expected = re.search(r"parts\s+could\s+do\s+(\S+)\s+steps/s\.\s+The\s+training\s+did\s+(\S+),", done.stdout)
    if learned is None or expected is None:
        raise SystemExit(f"{name}: cannot find the score and the expected speed in the output: {done.stdout[-2000:]}")
    allowed, reached = (float(figure.replace(",", "")) for figure in expected.groups())
    unattributed, _ = facts.breakdown.rows[-2:]
    wall, training = facts.breakdown.wall_ns, facts.breakdown.training_ns
    rows: list[tuple[str, int, int, float | None]]
    rows = [(line.title, line.depth, line.ledger_ns, line.share) for line in found.lines]
    if not find_workload(name).components:
        accounts = sorted(facts.operations, key=lambda operation: -operation.ledger_ns)[:ROWS]
        rows = [(one.operation, 0, one.ledger_ns, round(100 * one.ledger_ns / training, 1)) for one in accounts]
    rows += [(part.name, 0, part.ns, None) for part in found.outside]  # no part of the training has no share
    return {
        "seconds": wall / 1e9,
        "score": learned[1],
        "first": float(learned[2].replace(",", "")),
        "last": float(learned[3].replace(",", "")),
        "steps_per_second": reached,
        "allowed_steps_per_second": allowed,
        "expect_ratio": reached / allowed,
        "unattributed": unattributed.ledger_ns / training,
        "breakdown": [
            {"title": title, "depth": depth, "seconds": ns / 1e9, "share": share} for title, depth, ns, share in rows
        ],
    }


def cure(
    name: str, arms: tuple[str, str], operation: str | None, pairs: int, blocks: int, more: list[str]
) -> dict[str, Any]:
    """The effect of a cure on the training and on its operation."""
    chance = random.Random()
    iterations = f"iterations={blocks + 5}"
    commands = tuple(" ".join(["train", name, *more, arm, iterations]) for arm in arms)
    found = []
    for number in range(pairs):
        progress(f"{name}: {arms[1]}, pair {number + 1} of {pairs}")
        found.append(measured(run_pair((commands[0], commands[1]), blocks, chance), component_of({})))
    result = compare(commands[0], commands[1], found)
    part = next((component for component in result.components if component.name == operation), None)
    return {
        "a": arms[0],
        "b": arms[1],
        "pairs": result.pairs,
        "blocks": blocks,
        "speedup": result.speedup.estimate,
        "interval": [result.speedup.low, result.speedup.high],
        "verdict": result.verdict,
        "operation": operation,
        "operation_ratio": part.a_ns / part.b_ns if part and part.b_ns else None,
        "operation_share": part.a_ns / result.a_ns if part else None,
    }


def main() -> None:
    parser = Options(__doc__)
    parser.only("workload", WORKLOADS)
    parser.number("--pairs", 6, "pairs of processes per cure")
    parser.number("--blocks", 5, "iterations per process")
    parser.add_argument("words", nargs="*", metavar="KEY=VALUE", help="setting for all trainings")
    options = parser.parse_args()
    results: dict[str, Any] = {"machine": describe_machine(), "workloads": {}}
    for name in options.workload or WORKLOADS:
        progress(f"{name}: training")
        with tempfile.TemporaryDirectory() as folder:
            found = train(name, Path(folder), options.words)
        found["cures"] = {
            key: cure(name, (a, b), operation, options.pairs, options.blocks, options.words)
            for key, a, b, operation in CURES[name]
        }
        results["workloads"][name] = found
    figures = {f"{name}_unattributed": found["unattributed"] for name, found in results["workloads"].items()}
    bars = [Bar(key, "<=", 0.05) for key in figures]
    columns = ("workload", "score", "steps/s", "of the expected", "cure", "faster by")
    table = empty_table("Reference trainings and their cures", *columns, left=("score", "cure"))
    for name, found in results["workloads"].items():
        for key, one in found["cures"].items():
            score = f"{found['first']:.4g} to {found['last']:.4g}"
            speed = f"{found['steps_per_second']:,.0f}", f"{found['expect_ratio']:.2f}"
            low, high = (f"{100 * bound:+.1f}" for bound in one["interval"])
            table.add_row(name, score, *speed, key, f"{100 * one['speedup']:+.1f} % [{low}, {high}]")
    conclude({**results, **figures}, bars, options, table)


if __name__ == "__main__":
    main()

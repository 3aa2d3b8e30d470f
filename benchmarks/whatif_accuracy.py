"""Measure how well `rlprof whatif` predicts the effect of making a part of a training faster.

Six topologies of a training have three parts each. Each part is really made 1.5, 2 and 4 times faster: it does less
work. The truth comes from processes in which the speed of the parts changes between iterations, in random order. It is
compared with the prediction from an ordinary session, with the experiment of `--verify`, which only slows parts down,
and with the naive model: the durations of the part, summed over threads, as a share of the wall time. Errors are
relative errors of the time per iteration.
"""

from __future__ import annotations

import math
import random
import struct
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from _common import Bar, Options, conclude, describe_machine, empty_table, progress
from rich.table import Table

from rlprof.analysis.inference import jackknife
from rlprof.analysis.lane_work import work_of
from rlprof.analysis.prediction import prediction
from rlprof.analysis.topology import topology
from rlprof.experiment.arm import Arm
from rlprof.experiment.slowdowns import SlowdownPlan, run_slowdowns
from rlprof.session.reader import Session
from rlprof.whatif.verification import verify

TRAINING = Path(__file__).parent / "trainings" / "topologies.py"
TOPOLOGIES = ("serial", "threads", "threads_gil", "processes", "async_actor", "async_learner")
HARD = ("async_balanced", "async_threads")
"""Reported separately, and not part of the figures with limits: a pipeline that is balanced already, and one whose two
threads compete for the GIL. rlprof should be right, or say that it does not know."""
PARTS = ("env_step", "policy_forward", "update")
FASTER = (1.5, 2.0, 4.0)
BARS = (
    Bar("topologies", ">=", 4),
    Bar("prediction_rmse", "<=", 0.03),
    Bar("experiment_rmse", "<=", 0.025),
)
WARM_UP = 4
PROCESSES = 3
"""Processes for the truth, because each process has its own speed."""


def turns_of(name: str) -> tuple[int, int]:
    """Iterations after a change of speed that do not count, and that count. Work that began before the change is still
    in the queue, which is shorter than an iteration."""
    return (1, 3) if name.startswith("async") else (0, 1)


def set_speeds(path: Path, part: str, faster: float) -> None:
    """Write the speeds in place, because the training has mapped the file."""
    with path.open("r+b") as file:
        file.write(struct.pack("3d", *(faster if part == one else 1.0 for one in PARTS)))


def truth(name: str, folder: Path, blocks: int) -> dict[tuple[str, float], Any]:
    """The time per iteration with a faster part, relative to the usual time, with its interval."""
    speeds = folder / "speeds"
    speeds.write_bytes(struct.pack("3d", 1, 1, 1))
    settle, counted = turns_of(name)
    variants = [(part, times) for part in PARTS for times in FASTER]
    chance = random.Random(1)
    found: dict[tuple[str, float], list[tuple[float, float]]] = {variant: [] for variant in variants}

    def time(arm: Arm, part: str, faster: float) -> float:
        set_speeds(speeds, part, faster)
        return sum(turn.wall_ns for turn in arm.run_each(settle + counted)[settle:])

    for _ in range(PROCESSES):
        with Arm(name, f"run {TRAINING} {name} --speeds {speeds}", folder, ledger=False) as arm:
            arm.begin()
            for _ in range(WARM_UP):
                arm.run()
            for _ in range(blocks // PROCESSES // (settle + counted)):
                before = time(arm, "", 1.0)
                for variant in chance.sample(variants, len(variants)):
                    faster, after = time(arm, *variant), time(arm, "", 1.0)
                    found[variant].append((faster, (before + after) / 2))
                    before = after
    return {variant: ratio(times) for variant, times in found.items()}


def ratio(times: list[tuple[float, float]]) -> Any:
    """The ratio of the means, without the slowest fifth: other programs had the machine then."""
    calm = sorted(times, key=sum)[: -(len(times) // 5)]
    return jackknife(calm, lambda some: sum(one for one, _ in some) / sum(other for _, other in some), 0.05)


def measure(name: str, folder: Path, options: Any) -> list[dict[str, Any]]:
    command = f"run {TRAINING} {name}"
    recorded = [sys.executable, "-m", "rlprof", "run", "--dir", str(folder), "--quiet", str(TRAINING), name]
    subprocess.run([*recorded, "--iterations", str(options.iterations)], check=True, capture_output=True)
    (database,) = folder.glob("*/session.db")
    with Session(database) as session:
        work, snapshot = work_of(session), session.snapshot()
    how = topology(work)
    progress(f"{name}: recorded, {how.model}")
    beside = how.model == "async"  # as `rlprof whatif --verify` plans it
    plan = SlowdownPlan(
        command,
        PARTS,
        shares_gil=any(group.kind != "process" for group in how.groups),
        settle=2 if beside else 0,
        counted=4 if beside else 1,
        seconds=options.seconds,
        width=0.005,
    )
    experiments = run_slowdowns(plan)
    progress(
        f"{name}: {', '.join(f'{one.operation} {one.cost.estimate:.3f}' for one in experiments.values() if one.cost)}"
    )
    rows: list[dict[str, Any]] = []
    for (part, faster), real in truth(name, folder, options.blocks).items():
        saving = {part: 1 / faster}
        predicted = prediction(work, how, saving)
        verified = verify(work, how, predicted, {part: experiments[part]})
        tried = verified.experiment
        share = snapshot.account(part).busy_ns / snapshot.wall_ns
        rows.append(
            {
                "topology": name,
                "model": how.model,
                "part": part,
                "faster": faster,
                "truth": real.estimate,
                "truth_interval": (real.low, real.high),
                "predicted": 1 / (1 + predicted.gain.estimate),
                "covered": _covers(predicted.gain, real),
                "experiment": None if tried is None else 1 / (1 + tried.estimate),
                "trusted": verified.trusted,
                "naive": max(0.0, 1 - share * (1 - 1 / faster)),
            }
        )
    return rows


def _covers(gain: Any, real: Any) -> bool:
    """True if the interval of the prediction and that of the truth overlap."""
    return bool(1 / (1 + gain.high) <= real.high and real.low <= 1 / (1 + gain.low))


def rmse(rows: list[dict[str, Any]], of: str) -> float | None:
    """The root mean square error of all rows with an answer."""
    errors = [row[of] / row["truth"] - 1 for row in rows if row[of] is not None]
    return math.sqrt(sum(error * error for error in errors) / len(errors)) if errors else None


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    worst: Mapping[str, Any] = max(rows, key=lambda row: abs(row["predicted"] / row["truth"] - 1))
    return {
        "prediction_rmse": rmse(rows, "predicted"),
        "prediction_worst": worst["predicted"] / worst["truth"] - 1,
        "prediction_covered": sum(row["covered"] for row in rows) / len(rows),
        "experiment_rmse": rmse(rows, "experiment"),
        "experiment_worst": max(abs((row["experiment"] or row["truth"]) / row["truth"] - 1) for row in rows),
        "experiment_answered": sum(row["experiment"] is not None for row in rows) / len(rows),
        "trusted": sum(row["trusted"] for row in rows) / len(rows),
        "trusted_rmse": rmse([row for row in rows if row["trusted"]], "predicted"),
        "naive_rmse": rmse(rows, "naive"),
    }


def table(results: dict[str, Any]) -> Table:
    columns = ("topology", "part", "faster", "truth", "predicted", "experiment", "trusted", "naive")
    shown = empty_table("Time per iteration, relative to the usual time", *columns, left=("part",))
    for row in results["rows"]:
        figures = [row[key] for key in ("truth", "predicted", "experiment", "naive")]
        cells = ["-" if figure is None else f"{figure:.3f}" for figure in figures]
        cells.insert(3, "yes" if row["trusted"] else "no")
        shown.add_row(row["topology"], row["part"], f"{row['faster']:g}x", *cells)
    return shown


def main() -> None:
    parser = Options(__doc__)
    parser.only("topology", (*TOPOLOGIES, *HARD))
    parser.number("--iterations", 1500, "iterations of the recorded session")
    parser.number("--blocks", 600, "iterations of each variant for the truth, a quarter of them if asynchronous")
    parser.number("--seconds", 60.0, "longest time of the experiment")
    options = parser.parse_args()
    results: dict[str, Any] = {"machine": describe_machine(), "rows": []}
    for name in options.topology or (*TOPOLOGIES, *HARD):
        with tempfile.TemporaryDirectory() as folder:
            results["rows"] += measure(name, Path(folder), options)
    names = list(dict.fromkeys(row["topology"] for row in results["rows"]))
    results["topologies"] = len(set(names) & set(TOPOLOGIES))
    results["by_topology"] = {
        name: summary([row for row in results["rows"] if row["topology"] == name]) for name in names
    }
    results |= summary([row for row in results["rows"] if row["topology"] in TOPOLOGIES])
    conclude(results, BARS, options, table(results))


if __name__ == "__main__":
    main()

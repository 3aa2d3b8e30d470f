"""Check the findings of `rlprof report` on small trainings with one known performance problem each.

Each training in `answers/` has its problem in one place, measures that place and its steps per second itself, and has a
`--fix`. It runs once under `rlprof run`, unchanged. Its report is right if

- the operations or lines with the problem have the share of the training time that the training measured, within 5
  points (`place_right`),
- the first finding names the problem (`first_finding_right`), at a line where it is (`line_right`),
- the steps per second are those that the training measured (`steps_per_second_error`),
- the fix brings what the finding promises (`gain_inside_interval`). The fix is measured
  in turns of 25 ms with the original. A training that waits, writes files or needs several cores is measured with
  `rlprof compare`, or in whole runs if the fix changes the work of an iteration.

Healthy trainings must have no finding (`healthy_with_finding`).
"""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean
from time import perf_counter, sleep
from typing import Any

from _answer_report import Answer, answers, share_of_lines, share_of_operations, steps_per_second
from _answer_table import TRUTHS
from _answer_truths import FOLDER, Truth
from _common import Bar, Options, conclude, describe_machine, empty_table, progress
from rich.table import Table

BARS = (
    Bar("trainings_with_a_problem", ">=", 40),
    Bar("healthy_trainings", ">=", 6),
    Bar("failed", "==", 0),
    Bar("place_right", ">=", 0.95),
    Bar("first_finding_right", ">=", 0.8),
    Bar("line_right", ">=", 0.9),
    Bar("healthy_with_finding", "==", 0),
    Bar("gain_inside_interval", ">=", 0.8),
    Bar("steps_per_second_error", "<=", 0.02),
)
POINTS = 5.0
TURN_SECONDS = 0.025
STANDS_OUT = 1.5
"""A first iteration that takes longer than this many others has one-time costs, which rlprof counts as start-up."""


def run(command: list[str], folder: Path, **environment: str) -> str:
    done = subprocess.run(
        command, env={**os.environ, **environment}, cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {done.stderr[-2000:]}")
    return done.stdout


def script(training: str) -> str:
    return str(FOLDER / f"{training}.py")


def rlprof(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "rlprof", *arguments]


def run_alone(training: str, folder: Path, *arguments: str) -> dict[str, Any]:
    """What the training measures itself, without rlprof."""
    own = Path(tempfile.mkdtemp(dir=folder))
    run([sys.executable, script(training), *arguments], own, ANSWERS_TRUTH=str(own / "alone.json"))
    return dict(json.loads((own / "alone.json").read_text()))


def run_alternating(training: str, folder: Path, variants: tuple[tuple[str, ...], ...]) -> list[float]:
    """Steps per second of variants that run in turns of 25 ms, so that whatever the machine does slows all alike."""
    truths = [folder / f"variant-{number}.json" for number in range(len(variants))]
    processes = [
        subprocess.Popen(
            [sys.executable, script(training), *arguments],
            cwd=folder, env={**os.environ, "ANSWERS_TRUTH": str(truth)}, stdout=subprocess.DEVNULL,
        )
        for arguments, truth in zip(variants, truths)
    ]  # fmt: skip
    turns: list[list[tuple[float, float]]] = [[] for _ in variants]
    try:
        for process in processes:
            process.send_signal(signal.SIGSTOP)
        while any(process.poll() is None for process in processes):
            for process, own in zip(processes, turns):
                if process.poll() is None:
                    began = perf_counter()
                    process.send_signal(signal.SIGCONT)
                    sleep(TURN_SECONDS)
                    process.send_signal(signal.SIGSTOP)
                    own.append((began, perf_counter()))
    finally:
        for process in processes:
            process.kill()
    if any(process.wait() for process in processes):
        raise RuntimeError(f"{training} failed")
    return [_speed_in(json.loads(truth.read_text()), own) for truth, own in zip(truths, turns)]


def _speed_in(own: dict[str, Any], turns: list[tuple[float, float]]) -> float:
    """Steps per second of the time in which the training had its turns. All processes have the same clock."""
    began, ended = own["began"], own["ended"]
    return float(own["steps"] / sum(max(0.0, min(end, ended) - max(start, began)) for start, end in turns))


def run_reported(training: str, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The report of one run, and what the training measured itself in it. A run that is in the folder is read again."""
    truth, sessions = folder / f"{training}.json", folder / training
    if not truth.exists():
        shutil.rmtree(sessions, ignore_errors=True)  # of a run that was interrupted
        run(rlprof("run", "--quiet", "--dir", str(sessions), script(training)), folder, ANSWERS_TRUTH=str(truth))
    (session,) = sessions.iterdir()
    report = json.loads(run(rlprof("report", str(session), "--format", "json"), folder))
    return report, json.loads(truth.read_text())


def rates_of(own: dict[str, Any]) -> list[float]:
    """Steps per second, and also without the first iteration if that one stands out."""
    first = own["first"]
    rates = [own["steps"] / own["seconds"]]
    if first["seconds"] > STANDS_OUT * own["median_iteration"]:
        rates.append((own["steps"] - first["steps"]) / (own["seconds"] - first["seconds"]))
    return rates


def shares_of(own: dict[str, Any]) -> list[float]:
    """Percent of the time in the planted place, and also without the first iteration if that one stands out."""
    first = own["first"]
    shares = [100 * own["section"] / own["wall"]]
    if first["seconds"] > STANDS_OUT * own["median_iteration"]:
        shares.append(100 * (own["section"] - first["section"]) / (own["wall"] - first["seconds"]))
    return shares


def nearest(figure: float, candidates: Iterable[float]) -> float:
    return min(candidates, key=lambda candidate: abs(candidate - figure))


def score(training: str, truth: Truth, report: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Compare a report with what is known about the training. None stands for what cannot be judged."""
    found, rate = answers(report), steps_per_second(report)
    own_rate = nearest(rate, rates_of(own))
    right = next((answer for answer in found if answer.rule in truth.rules), None)
    lines = truth.lines(training)
    shown = planted = None
    if truth.costs_time and not truth.healthy:
        shown = share_of_operations(report, truth.operations) if truth.operations else share_of_lines(report, lines)
        planted = nearest(shown, shares_of(own))
    return {
        "healthy": truth.healthy,
        "planted_share": planted,
        "shown_share": shown,
        "place_right": None if shown is None or planted is None else abs(shown - planted) <= POINTS,
        "findings": [answer.rule for answer in found],
        "first_finding_right": None if truth.healthy else bool(found) and found[0].rule in truth.rules,
        "place": right and right.file and f"{right.file}:{right.line}",
        "line_right": right is not None and right.is_within(lines) if lines else None,
        "promised_gain": _promised(right),
        "own_steps_per_second": own_rate,
        "steps_per_second": rate,
        "steps_per_second_error": abs(rate / own_rate - 1),
    }


def _promised(right: Answer | None) -> list[float] | None:
    return list(right.gain) if right is not None and right.gain is not None else None


def measure_gain(training: str, truth: Truth, folder: Path, pairs: int) -> dict[str, Any]:
    """How many times as fast the fixed training is."""
    if truth.one_core:
        alternating = [run_alternating(training, folder, ((), ("--fix",))) for _ in range(pairs)]
        logs, by = [math.log(fast / slow) for slow, fast in alternating], "turns of 25 ms"
    elif truth.pairs:
        arms = [f"run {script(training)} --iterations 1000000{fix}" for fix in ("", " --fix")]
        limits = ["--pairs", str(2 * pairs), "--iterations", "10", "--max-time", "5m", "--precision", "1%"]
        found = json.loads(run(rlprof("compare", *arms, *limits, "--format", "json"), folder))
        speedup = found["speedup"]
        ends = [1 + speedup[end] for end in ("low", "high")] if speedup["low"] is not None else None
        return {"by": "rlprof compare", "gain": 1 + speedup["estimate"], "interval": ends, "verdict": found["verdict"]}
    else:
        logs, by = [_log_ratio(training, folder) for _ in range(2 * pairs)], "whole runs"
    return {"by": by, "gain": math.exp(fmean(logs)), "interval": [math.exp(min(logs)), math.exp(max(logs))]}


def _log_ratio(training: str, folder: Path) -> float:
    slow, fast = (_speed(run_alone(training, folder, *arguments)) for arguments in ((), ("--fix",)))
    return math.log(fast / slow)


def _speed(own: dict[str, Any]) -> float:
    """Steps per second of wall time, with evaluations: a fix may be to evaluate less."""
    return float(own["steps"] / own["wall"])


def measure(training: str, options: Any, measured: dict[str, Any] | None = None) -> dict[str, Any]:
    """The row of one training. A gain that was measured already is not measured again."""
    truth = TRUTHS[training]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        report, own = run_reported(training, options.sessions or folder)
        row = score(training, truth, report, own)
        if not options.no_gains and row["promised_gain"]:
            row["measured_gain"] = measured or measure_gain(training, truth, folder, options.pairs)
            low, high = row["promised_gain"]
            row["gain_inside_interval"] = low <= row["measured_gain"]["gain"] <= high
    return row


def fraction(rows: Iterable[dict[str, Any]], key: str) -> float | None:
    judged = [row[key] for row in rows if row.get(key) is not None]
    return fmean(judged) if judged else None


def summarize(rows: dict[str, dict[str, Any]]) -> dict[str, Any]:
    every = rows.values()
    keys = ("place_right", "first_finding_right", "line_right", "gain_inside_interval")
    return {
        "trainings_with_a_problem": sum(not row["healthy"] for row in every),
        "healthy_trainings": sum(row["healthy"] for row in every),
        **{key: fraction(every, key) for key in keys},
        "healthy_with_finding": sum(row["healthy"] and bool(row["findings"]) for row in every),
        "steps_per_second_error": max((row["steps_per_second_error"] for row in every), default=None),
    }


def table(rows: dict[str, dict[str, Any]]) -> Table:
    columns = ("training", "planted", "shown", "first finding", "line", "steps/s", "promised", "measured")
    shown = empty_table("Answers", *columns, left=("first finding", "line"))
    marks = {None: "-", True: "yes", False: "[red]NO[/]"}
    for name, row in rows.items():
        percents = ["-" if row[key] is None else f"{row[key]:.0f} %" for key in ("planted_share", "shown_share")]
        first = row["findings"][0] if row["findings"] else "none"
        right = (not row["findings"]) if row["healthy"] else row["first_finding_right"]
        promised = row["promised_gain"]
        gain = row.get("measured_gain")
        shown.add_row(
            name,
            percents[0],
            percents[1] if row["place_right"] in (None, True) else f"[red]{percents[1]}[/]",
            first if right else f"[red]{first}[/]",
            marks[row["line_right"]],
            f"{100 * row['steps_per_second_error']:.1f} %",
            f"{promised[0]:.2f}-{promised[1]:.2f}" if promised else "-",
            f"{gain['gain']:.2f}" if gain else "-",
        )
    return shown


def main() -> None:
    parser = Options(__doc__)
    parser.add_argument("--only", choices=TRUTHS, action="append", help="measure only this training (repeatable)")
    parser.add_argument("--no-gains", action="store_true", help="do not measure what the fixes bring")
    parser.add_argument("--sessions", type=Path, help="keep the runs in this folder, and read those that are there")
    parser.add_argument("--resume", action="store_true", help="keep the gains that --output has already")
    parser.number("--pairs", 1, "pairs of runs with and without the fix, twice as many where they cannot alternate")
    options = parser.parse_args()
    rows: dict[str, dict[str, Any]] = {}
    failed = []
    if options.sessions is not None:
        options.sessions.mkdir(parents=True, exist_ok=True)
        options.sessions = options.sessions.resolve()
    if options.resume and options.output is not None and options.output.exists():
        rows = json.loads(options.output.read_text())["trainings"]
    for training in options.only or TRUTHS:
        try:
            row = measure(training, options, rows.get(training, {}).get("measured_gain"))
        except RuntimeError as error:
            progress(f"{training}: {error}")
            failed.append(training)
            continue
        rows[training] = row
        progress(f"{training}: {json.dumps(row)}")
        if options.output is not None:
            options.output.write_text(json.dumps({"trainings": rows}, indent=2) + "\n")
    results = {
        "machine": describe_machine(),
        **summarize(rows),
        "failed": len(failed),
        "failed_names": failed,
        "trainings": rows,
    }
    conclude(results, BARS, options, table(rows))


if __name__ == "__main__":
    main()

"""The trainings of benchmarks/answers: each has a declared truth, runs with and without its fix, and is scored."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from components import missing

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
try:
    import answers
    from _answer_table import TRUTHS
    from _answer_truths import FOLDER, Function, Text, Truth, files
finally:
    sys.path.remove(str(BENCHMARKS))

NEEDS = {"sb3": "stable_baselines3", "torchrl": "torchrl", "healthy_sb3": "stable_baselines3"}


def test_every_training_has_a_truth_and_every_truth_a_training():
    assert files().keys() == TRUTHS.keys()


def test_there_are_enough_trainings():
    healthy = [truth for truth in TRUTHS.values() if truth.healthy]
    assert len(healthy) >= 6
    assert len(TRUTHS) - len(healthy) >= 40


@pytest.mark.parametrize("training", TRUTHS)
def test_every_declared_line_is_in_the_source_exactly_once(training):
    truth = TRUTHS[training]
    lines = truth.lines(training)
    assert all(lines.values())
    assert truth.healthy or lines or truth.operations, "the time must be somewhere"


def test_a_text_that_is_missing_or_there_twice_is_refused(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("a = 1\nb = 2\na = 1\n")
    assert Text("b = 2").lines(path) == {2}
    assert Text("b = 2", "b = 2").lines(path) == {2}
    for text in (Text("a = 1"), Text("c = 3")):
        with pytest.raises(ValueError, match="once"):
            text.lines(path)
    with pytest.raises(ValueError, match="one function"):
        Function("main").lines(path)


def test_no_training_uses_rlprof_or_names_its_problem():
    for path in FOLDER.glob("*.py"):
        text = path.read_text().lower()
        assert not [word for word in ("rlprof", "planted", " bug", "slow path") if word in text], path


def report_with(findings: list[dict], lines: dict[str, list[dict]], rows: list[dict]) -> dict:
    return {
        "findings": {"findings": findings, "notes": []},
        "facts": {
            "progress": {"steps_per_second": 101.0},
            "breakdown": {"training_ns": 10e9, "rows": rows},
            "code": {"lines": lines},
        },
    }


OWN = {
    "steps": 1000, "seconds": 10.0, "wall": 10.0, "section": 4.0, "median_iteration": 1.0,
    "first": {"seconds": 1.0, "steps": 100, "section": 0.4},
}  # fmt: skip


def finding(rule: str, line: int, low: float = 1.1) -> dict:
    return {
        "rule": rule,
        "place": {"file": "answers/ppo_collecting.py", "line": line},
        "gain": {"estimate": 1.2, "low": low, "high": 1.3},
    }


def test_a_right_report_is_scored_right():
    (line,) = TRUTHS["ppo_collecting"].lines("ppo_collecting")["ppo_collecting.py"]
    lines = {"update": [{"file": "answers/ppo_collecting.py", "line": line, "ns": 4.4e9}]}
    row = answers.score(
        "ppo_collecting", TRUTHS["ppo_collecting"], report_with([finding("gc_pauses", line)], lines, []), OWN
    )
    assert row["place_right"]
    assert row["first_finding_right"]
    assert row["line_right"]
    assert row["promised_gain"] == [1.1, 1.3]
    assert row["steps_per_second_error"] == pytest.approx(0.01)


def test_a_wrong_report_is_scored_wrong():
    lines = {"update": [{"file": "answers/ppo_collecting.py", "line": 1, "ns": 4.4e9}]}
    found = [finding("python_gae", 1), finding("gc_pauses", 1)]
    row = answers.score("ppo_collecting", TRUTHS["ppo_collecting"], report_with(found, lines, []), OWN)
    assert row["place_right"] is False
    assert row["first_finding_right"] is False
    assert row["line_right"] is False


def test_an_operation_inside_another_is_counted_once():
    rows = [
        {"operation": "update", "depth": 0, "subtree_ledger_ns": 4e9},
        {"operation": "update", "depth": 1, "subtree_ledger_ns": 1e9},
        {"operation": "rollout", "depth": 0, "subtree_ledger_ns": 6e9},
    ]
    row = answers.score("x", Truth(("small_minibatch",), ("update",)), report_with([], {}, rows), OWN)
    assert row["shown_share"] == pytest.approx(40)
    assert row["line_right"] is None


def test_a_healthy_training_is_judged_by_its_findings():
    row = answers.score("x", Truth(), report_with([finding("gc_pauses", 1)], {}, []), OWN)
    summary = answers.summarize({"x": row})
    assert summary["healthy_with_finding"] == 1
    assert summary["place_right"] is None


@pytest.mark.long
@pytest.mark.parametrize("fix", [(), ("--fix",)], ids=["as it is", "fixed"])
@pytest.mark.parametrize("training", TRUTHS)
def test_every_training_runs_and_measures_itself(training, fix, tmp_path):
    for component in ("torch", "gymnasium", *(name for start, name in NEEDS.items() if training.startswith(start))):
        if importlib.util.find_spec(component) is None:
            missing(component)
    truth = tmp_path / "truth.json"
    done = subprocess.run(
        [sys.executable, str(FOLDER / f"{training}.py"), "--iterations", "2", *fix],
        env={**os.environ, "ANSWERS_TRUTH": str(truth)}, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    own = json.loads(truth.read_text())
    assert own["steps"] > 0
    assert own["iterations"] >= 2
    assert 0 <= own["section"] <= own["wall"]
    assert own["seconds"] <= own["wall"]

"""The example, run as a user runs it: it learns, its spans cover it, and profiling changes no result."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from components import missing
from sessions import facts_of

EXAMPLE = Path(__file__).parent.parent / "examples" / "cartpole_ppo.py"


def run(folder: Path, *arguments: str) -> str:
    """Run the example on a terminal of 80 columns. Returns its output."""
    for component in ("torch", "gymnasium"):
        if importlib.util.find_spec(component) is None:
            missing(component)
    environment = {**os.environ, "COLUMNS": "80", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), *arguments],
        capture_output=True, encoding="utf-8", timeout=120, env=environment, check=False, cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def returns(output: str) -> list[float]:
    return [float(mean) for mean in re.findall(r"^iteration .* (\S+)$", output, re.MULTILINE)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("example")


@pytest.fixture(scope="module")
def trained(folder) -> str:
    return run(folder, "--iterations", "40")


def test_it_learns_to_hold_the_pole_up(trained):
    first, *_, last = returns(trained)
    assert first < 50
    assert last > 100


def test_its_spans_cover_more_than_95_percent_of_its_time(trained):
    (tree_row, category_row) = re.findall(r"^unattributed .*?([\d.]+)%", trained, re.MULTILINE)
    assert tree_row == category_row
    assert float(tree_row) < 5


def test_its_breakdown_has_a_row_for_each_step_of_ppo_and_fits_80_columns(trained):
    report = trained[trained.index("Largest account") :]
    top = {"env_step", "policy_forward", "action_sampling", "buffer_add", "advantage", "update", "logging"}
    inner = {"evaluate_actions", "loss", "backward", "gradient_clip", "optimizer_step"}
    assert top <= set(re.findall(r"^(\w+) ", report, re.MULTILINE))
    assert inner <= set(re.findall(r"^  (\w+) ", report, re.MULTILINE))
    assert ", 40 iterations." in trained
    assert "steps/s in " in trained
    assert max(len(line) for line in trained.splitlines()) <= 80


def test_it_leaves_a_session_that_counts_its_steps_and_episodes(trained, folder):
    (session,) = (folder / "rlprof-runs").iterdir()
    facts = facts_of(session)
    assert facts.progress.steps == 40 * 8 * 128
    assert facts.progress.episodes > 100
    assert facts.session.settings["envs"] == 8


@pytest.mark.long
def test_returns_and_weights_are_the_same_bit_for_bit_without_profiling(tmp_path):
    arguments = ("--iterations", "3", "--envs", "4", "--steps", "64", "--seed", "7")
    profiled, plain = run(tmp_path, *arguments), run(tmp_path, *arguments, "--no-profile")
    assert len(returns(plain)) == 2
    assert "Largest account" not in plain
    training = profiled[: profiled.index("checksum")] + re.search("checksum.*", profiled)[0]
    assert training.split() == plain.split()

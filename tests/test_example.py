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


def shares(output: str) -> dict[str, float]:
    """Percent of the wall time per operation."""
    rows = re.findall(r"^(\w+) +[\d,]+ +[\d.]+ +([\d.]+)%$", output, re.MULTILINE)
    return {operation: float(share) for operation, share in rows}


def test_its_spans_cover_more_than_95_percent_of_its_time(trained):
    assert shares(trained)["unattributed"] < 5
    assert sum(shares(trained).values()) == pytest.approx(100, abs=1.5)  # each is rounded


def test_its_table_has_a_row_for_each_part_of_ppo_and_fits_80_columns(trained):
    collecting = {"env_step", "policy_forward", "action_sampling", "buffer_add", "advantage", "logging"}
    updating = {"update", "evaluate_actions", "loss", "backward", "gradient_clip", "optimizer_step"}
    assert collecting | updating <= set(shares(trained))
    assert max(len(line) for line in trained.splitlines()) <= 80


def test_it_uses_only_the_public_api():
    imports = re.findall(r"^(?:from|import) (rlprof\S*)", EXAMPLE.read_text(), re.MULTILINE)
    assert set(imports) == {"rlprof"}


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
    assert not shares(plain)
    training = profiled[: profiled.index("checksum")] + re.search("checksum.*", profiled)[0]
    assert training.split() == plain.split()

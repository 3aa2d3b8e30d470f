"""Runs of workloads for tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from rlprof.analysis.facts import Facts
from rlprof.analysis.load import load_facts


@dataclass(frozen=True)
class Twice:
    """Scores of the same training without rlprof and recorded."""

    alone: list[float | None]
    recorded: list[float | None]
    variant: list[float | None]
    """Scores of a shorter training with the cure, without rlprof."""
    steps: int
    facts: Facts

    def check(self, steps: int, iterations: int) -> None:
        """Neither recording nor the cure changes a score, and the session has all steps and nearly all time."""
        assert self.recorded == self.alone
        assert self.variant == self.alone[: len(self.variant)] != []
        assert self.facts.progress.steps == self.steps == steps
        assert self.facts.breakdown.iterations == iterations
        assert self.facts.breakdown.rows[-2].ledger_ns <= 0.05 * self.facts.breakdown.wall_ns


def train_twice(name: str, folder: Path, *words: str) -> Twice:
    """Train in another process. Settings are key=value, those of the variant come after `--`."""
    command = [sys.executable, str(Path(__file__).with_name("twice.py")), name, str(folder), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=170, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    return Twice(told["alone"], told["recorded"], told["variant"], told["steps"], load_facts(told["session"]))


def rlprof(folder: Path, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run `rlprof WORDS` in a folder, which also gets the sessions."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RLPROF")}
    done = subprocess.run(
        [sys.executable, "-m", "rlprof", *words],
        capture_output=True, text=True, timeout=170, check=False, cwd=folder, env={**environment, "COLUMNS": "100"},
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done

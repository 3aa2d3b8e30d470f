"""Runs of workloads, as tests need them."""

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
    """The same training alone and recorded."""

    alone: list[float | None]
    recorded: list[float | None]
    variant: list[float | None]
    """Alone, with other settings."""
    steps: int
    facts: Facts

    @property
    def unattributed(self) -> float:
        return self.facts.breakdown.rows[-2].ledger_ns / self.facts.breakdown.wall_ns


def train_twice(name: str, folder: Path, *words: str) -> Twice:
    """Settings as key=value; a variant's after `--`."""
    command = [sys.executable, str(Path(__file__).with_name("twice.py")), name, str(folder), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=170, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    return Twice(told["alone"], told["recorded"], told["variant"], told["steps"], load_facts(told["session"]))


def rlprof(folder: Path, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """`rlprof WORDS` in a folder; sessions go below it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RLPROF")}
    done = subprocess.run(
        [sys.executable, "-m", "rlprof", *words],
        capture_output=True, text=True, timeout=170, check=False, cwd=folder, env={**environment, "COLUMNS": "100"},
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done

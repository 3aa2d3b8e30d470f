"""Runs of workloads for tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sessions

from rlprof.analysis.components import components
from rlprof.analysis.facts import Facts
from rlprof.analysis.load import load_facts
from rlprof.workloads import find_workload
from rlprof.workloads.progress import Progress
from rlprof.workloads.settings import make_settings, read_overrides


def settings_of(workload: str, *words: str) -> Any:
    """The settings of a workload from words like `seed=3`."""
    return make_settings(find_workload(workload).settings, ("words", read_overrides(words)))


def scores_of(workload: str, settings: Any) -> list[float | None]:
    """Train in this process, unrecorded. Returns the score of each iteration."""
    progress = Progress(workload, "score", show=False)
    find_workload(workload).load().train(settings, progress)
    return progress.scores


def calls_of(facts: Facts) -> Counter[str]:
    """Number of calls per operation."""
    calls: Counter[str] = Counter()
    for row in facts.breakdown.rows:
        calls[row.operation] += row.calls
    return calls


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

    def check_components(self, layout: Mapping[str, Any], most_elsewhere: float = 0) -> None:
        """Every component has time, and no more than this share of the time has no component."""
        found = components(self.facts.breakdown, layout)
        found.check()
        times = {(line.depth, line.title): line.ledger_ns for line in found.lines}
        for title, inside in layout.items():
            assert times[0, title] > 0, title
            for inner in inside if isinstance(inside, Mapping) else ():
                assert times[1, inner] > 0, inner
        assert times.get((0, "Everything else"), 0) <= most_elsewhere * self.facts.breakdown.wall_ns


def train_twice(name: str, folder: Path, *words: str, python: tuple[str, ...] = ()) -> Twice:
    """Train in another process. Settings are key=value, those of the variant come after `--`."""
    command = [sys.executable, *python, str(Path(__file__).with_name("twice.py")), name, str(folder), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=170, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    facts = load_facts(result.pop("session"))
    return Twice(**result, facts=facts)


def rlprof(folder: Path, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run `rlprof WORDS` in a folder, which also gets the sessions."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RLPROF")}
    return sessions.rlprof(*words, code=code, cwd=folder, env={**environment, "COLUMNS": "100"})

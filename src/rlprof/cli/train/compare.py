"""`rlprof train WORKLOAD --compare`: compares a workload without and with its cure."""

from __future__ import annotations

import shlex
import subprocess
import sys
from dataclasses import replace
from functools import partial

from rlprof.analysis.components import component_of
from rlprof.cli.output import show
from rlprof.cli.progress import run_comparison
from rlprof.compare.paired import MOST, MOST_PAIRS, Plan
from rlprof.compare.text import render
from rlprof.errors import RlprofError
from rlprof.experiment.pairs import WARM_UP
from rlprof.workloads.settings import Settings, as_words
from rlprof.workloads.workload import Workload

SECONDS = 105.0
"""Time limit for a comparison without --pairs: an answer within two minutes."""
FEW = 5
"""Fewest iterations per pair, unless the settings change the number of iterations."""


def compare_cure(workload: Workload, settings: Settings, pairs: int | None, breakdown: bool, detailed: bool) -> None:
    """Both arms have these settings, except for the cure. Each pair has as many iterations as the settings say."""
    blocks = settings.total_iterations if settings.total_iterations != workload.settings().total_iterations else FEW
    given = [word for word in as_words(settings) if word.partition("=")[0] not in ("iterations", "timesteps")]
    arms = tuple([*given, f"{workload.cure}={cure}"] for cure in ("false", "true"))
    enough = f"iterations={MOST * blocks + WARM_UP + 2}"
    commands = [shlex.join(["train", workload.name, *arm, enough, "--no-progress"]) for arm in arms]
    named = component_of(workload.components if breakdown else {})
    plan = Plan(commands[0], commands[1], pairs=pairs or MOST_PAIRS, blocks=blocks)
    if not pairs:
        plan = replace(plan, seconds=SECONDS)
    show(partial(render, run_comparison(plan, named)))
    if detailed:
        for arm, off in zip(arms, ("no-", "")):
            _profile_functions(workload.name, [*arm, f"iterations={blocks}"], f"{workload.name}_{off}{workload.cure}")


def _profile_functions(workload: str, arm: list[str], name: str) -> None:
    """Train once more with cProfile, which slows too much to compare times. Writes functions/whole.txt."""
    words = ["train", workload, "--cprofile", "--name", name, "--no-progress", *arm]
    if subprocess.run([sys.executable, "-m", "rlprof", *words], check=False).returncode:
        raise RlprofError(f"{name} failed under cProfile. Its output is above.")

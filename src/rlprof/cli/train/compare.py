"""`rlprof train WORKLOAD --compare`: without its cure against with it."""

from __future__ import annotations

import shlex
import subprocess
import sys
from functools import partial

from rlprof.analysis.components import component_of
from rlprof.cli.compare_progress import run_comparison
from rlprof.cli.output import show
from rlprof.compare.paired import MOST, Plan
from rlprof.compare.text import render
from rlprof.errors import RlprofError
from rlprof.experiment.pairs import WARM_UP
from rlprof.workloads.settings import Settings, as_words
from rlprof.workloads.workload import Workload

PAIRS, SECONDS = 6, 105.0
"""At most, unless told: an answer in two minutes."""
FEW = 5
"""Iterations in a pair, at least, where the training's own number was not changed."""


def compare_cure(workload: Workload, settings: Settings, pairs: int | None, breakdown: bool, detailed: bool) -> None:
    """Both arms have these settings, but for the cure; as many iterations of each as were asked for in every pair."""
    blocks = settings.total_iterations if settings.total_iterations != workload.settings().total_iterations else FEW
    given = [word for word in as_words(settings) if word.partition("=")[0] not in ("iterations", "timesteps")]
    arms = tuple([*given, f"{workload.cure}={cure}"] for cure in ("false", "true"))
    enough = f"iterations={MOST * blocks + WARM_UP + 2}"
    commands = [shlex.join(["train", workload.name, *arm, enough, "--no-progress"]) for arm in arms]
    named = component_of(workload.components if breakdown else {})
    limit = {} if pairs else {"seconds": SECONDS}
    plan = Plan(commands[0], commands[1], pairs=pairs or PAIRS, blocks=blocks, **limit)
    show(partial(render, run_comparison(plan, named)))
    if detailed:
        for arm, off in zip(arms, ("no-", "")):
            _profile_functions(workload.name, [*arm, f"iterations={blocks}"], f"{workload.name}_{off}{workload.cure}")


def _profile_functions(workload: str, arm: list[str], name: str) -> None:
    """Once more with cProfile, which is no way to compare times: it leaves functions/whole.txt in the session."""
    words = ["train", workload, "--cprofile", "--profile-name", name, "--no-progress", *arm]
    if subprocess.run([sys.executable, "-m", "rlprof", *words], check=False).returncode:
        raise RlprofError(f"{name} has failed under cProfile; what it said is above")

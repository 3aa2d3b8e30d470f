"""`rlprof train WORKLOAD --compare`: without its cure against with it."""

from __future__ import annotations

import random
import shlex
import subprocess
import sys
from functools import partial

import click

from rlprof.analysis.comparison import compare
from rlprof.analysis.components import component_of
from rlprof.cli.output import show
from rlprof.errors import RlprofError
from rlprof.experiment.pairs import WARM_UP, measured, run_pair
from rlprof.report.comparison import render
from rlprof.workloads.settings import Settings, as_words
from rlprof.workloads.workload import Workload


def compare_cure(workload: Workload, settings: Settings, pairs: int, breakdown: bool, detailed: bool) -> None:
    """Both arms have these settings, but for the cure; as many iterations of each as were asked for in every pair."""
    blocks = settings.turns
    given = [word for word in as_words(settings) if word.partition("=")[0] not in ("iterations", "timesteps")]
    arms = tuple([*given, f"{workload.cure}={cure}"] for cure in ("false", "true"))
    commands = [
        shlex.join(["train", workload.name, *arm, f"iterations={blocks + WARM_UP + 2}", "--no-progress"])
        for arm in arms
    ]
    named = component_of(workload.components if breakdown else {})
    chance = random.Random()
    found = []
    for number in range(1, pairs + 1):
        tell = partial(_say, number, pairs, blocks)
        found.append(measured(run_pair((commands[0], commands[1]), blocks, chance, tell=tell), named))
    click.echo("", err=True)
    show(partial(render, compare(commands[0], commands[1], found)))
    if detailed:
        for arm, off in zip(arms, ("no-", "")):
            _profile_functions(workload.name, [*arm, f"iterations={blocks}"], f"{workload.name}_{off}{workload.cure}")


def _say(pair: int, pairs: int, blocks: int, block: int) -> None:
    doing = f"iteration {block} of {blocks}" if block > 0 else "warming up"
    click.echo(f"\rpair {pair} of {pairs}, {doing}   ", nl=False, err=True)


def _profile_functions(workload: str, arm: list[str], name: str) -> None:
    """Once more with cProfile, which is no way to compare times: it leaves functions/whole.txt in the session."""
    words = ["train", workload, "--cprofile", "--profile-name", name, "--no-progress", *arm]
    if subprocess.run([sys.executable, "-m", "rlprof", *words], check=False).returncode:
        raise RlprofError(f"{name} has failed under cProfile; what it said is above")

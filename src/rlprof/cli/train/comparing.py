"""`rlprof train WORKLOAD --compare`: without its cure against with it."""

from __future__ import annotations

import random
import shlex
import sys
from functools import partial

import click

from rlprof.analysis.comparison import compare
from rlprof.analysis.components import component_of
from rlprof.cli.output import show
from rlprof.experiment.pairs import WARM_UP, measured, run_pair
from rlprof.report.comparison import render
from rlprof.workloads.workload import Workload


def compare_cure(workload: Workload, words: list[str], blocks: int, pairs: int, breakdown: bool) -> None:
    """Both arms are this very command line, but for the cure; `blocks` iterations of each in every pair."""
    flag = workload.cure.replace("_", "-")
    given = [word for word in words if word not in (f"--{flag}", f"--no-{flag}")]
    long = blocks + WARM_UP + 2
    arms = [
        shlex.join(
            ["train", workload.name, *given, f"--{cure}", "--no-progress", "timesteps=null", f"iterations={long}"]
        )
        for cure in (f"no-{flag}", flag)
    ]
    chance = random.Random()
    named = component_of(workload.components if breakdown else {})
    found = []
    for number in range(1, pairs + 1):
        tell = partial(_say, number, pairs, blocks) if sys.stderr is not None else lambda _: None
        found.append(measured(run_pair((arms[0], arms[1]), blocks, chance, tell=tell), named))
    click.echo("", err=True)
    show(partial(render, compare(arms[0], arms[1], found)))


def _say(pair: int, pairs: int, blocks: int, block: int) -> None:
    doing = f"iteration {block} of {blocks}" if block > 0 else "warming up"
    click.echo(f"\rpair {pair} of {pairs}, {doing}   ", nl=False, err=True)

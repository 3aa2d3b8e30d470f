"""`rlprof compare 'run train.py --envs 4' 'run train.py --envs 8'`: is B really faster than A?"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import partial
from importlib.machinery import PathFinder
from importlib.util import find_spec
from typing import Any

import click

from rlprof.analysis.components import component_of
from rlprof.analysis.work import ITERATION, STEP
from rlprof.cli import options
from rlprof.cli.help import command, group, option
from rlprof.cli.output import deliver, destination
from rlprof.cli.progress import run_comparison
from rlprof.cli.run import run
from rlprof.cli.train import train
from rlprof.cli.train.command import check_settings
from rlprof.compare import noise_text
from rlprof.compare.arms import compare_arms, is_command
from rlprof.compare.gate import gate
from rlprof.compare.html import to_html
from rlprof.compare.noise import PAIRS, SMALL_PPO, measure_noise
from rlprof.compare.paired import MOST_PAIRS, Plan
from rlprof.compare.text import render, to_json, to_text, verdict
from rlprof.errors import RlprofError
from rlprof.experiment.arm import words_of
from rlprof.run.command import any_command, script_command
from rlprof.workloads import find_workload

FORMATS = {"text": to_text, "json": to_json, "html": to_html}
NOISE_FORMATS = {"text": noise_text.to_text, "json": noise_text.to_json}
INTERRUPTED = 130
"""Exit code for Ctrl-C, as in a shell."""


@command(
    examples=(
        "rlprof compare 'run train.py --envs 4' 'run train.py --envs 8'",
        "rlprof compare 'run old.py' 'run new.py' --fail-if-slower 5%",
        "rlprof compare baseline-runs/ last",
        "rlprof compare --noise",
    )
)
@click.argument("arms", nargs=-1, metavar="A B")
@group(
    "Experiment",
    option(
        "--pairs", type=click.IntRange(2), default_text=f"{MOST_PAIRS}, or {PAIRS} with --noise",
        help="Run at most N pairs of processes.",
    ),
    option("--iterations", type=click.IntRange(1), default=20, help="Run at least N iterations of each arm per pair."),
    option(
        "--precision", callback=options.precision, metavar="PERCENT", default="2%",
        help="Stop once the confidence interval is within plus or minus PERCENT.",
    ),
    option(
        "--per", type=click.Choice((STEP, ITERATION)),
        default_text="step if both count steps and do the same work per step, else no verdict",
        help="Unit of the verdict: steps per second or iterations per second.",
    ),
    options.max_time,
    options.patience,
    option(
        "--noise", is_flag=True,
        help="Compare A (default: a small PPO) with itself, to measure the error rate and the smallest difference "
        "that a comparison can show on this machine.",
    ),
)  # fmt: skip
@group(
    "Output",
    options.format_(*FORMATS),
    options.output,
    options.html,
    option(
        "--fail-if-slower", callback=options.share, metavar="PERCENT",
        help="Exit 1 if B is slower than A by more than PERCENT and the whole confidence interval agrees. Exit 2 if "
        "there are too few pairs to decide, or if A and B do different work.",
    ),
)  # fmt: skip
def compare(
    arms: tuple[str, ...], noise: bool, pairs: int | None, iterations: int, per: str | None, max_time: float,
    patience: float | None, precision: float, fail_if_slower: float | None,
    format_: str | None, html: str | None, output: str | None,
) -> None:  # fmt: skip
    """Compare two trainings: is B really faster than A, and which part?

    A and B are command lines of rlprof. Both are started as a pair of processes and interleaved, iteration by
    iteration. New pairs are started until the answer is precise enough. Environment variables may come first, as in a
    shell: 'OMP_NUM_THREADS=1 run train.py'.

    Or A and B are recorded sessions, which gives a weaker answer: a folder, a session.db, `last`, a JSON report,
    several of these with commas between them, or a folder of sessions.
    """
    plan = partial(Plan, blocks=iterations, seconds=max_time, patience=patience, per=per)
    chosen, output = destination(FORMATS, format_, output, html)
    if noise:
        if len(arms) > 1 or fail_if_slower is not None or chosen == "html":
            raise click.UsageError("--noise takes one training, and neither --html nor --fail-if-slower.")
        _measure_noise(plan, arms[0] if arms else SMALL_PPO, pairs or PAIRS, chosen, output)
        return
    if len(arms) != 2:
        raise click.UsageError("Give two trainings: 'run train.py --envs 4' 'run train.py --envs 8'")
    if all(map(is_command, arms)):
        check_arms({"A": arms[0], "B": arms[1]})
    found = compare_arms(
        plan(*arms, pairs=pairs or MOST_PAIRS, width=precision), partial(run_comparison, component_of=component_of({}))
    )
    deliver(FORMATS, render, chosen, output, found)
    if output is not None:
        click.echo(verdict(found), err=True)  # it was waited for
    if fail_if_slower is None:
        return
    if found.interrupted:
        click.echo("rlprof: interrupted, so --fail-if-slower has no answer", err=True)
        raise click.exceptions.Exit(INTERRUPTED)
    decision = gate(found, fail_if_slower)
    if decision.note:
        click.echo(f"rlprof: {decision.note}", err=True)
    if not decision.passed:
        raise click.exceptions.Exit(1)


def _measure_noise(plan: Any, a: str, pairs: int, chosen: str, output: str | None) -> None:
    check_arms({"A": a})
    one_component = partial(run_comparison, component_of=lambda _: "all of it")
    found = measure_noise(plan(a, a, pairs=pairs, width=0.0), one_component)
    deliver(NOISE_FORMATS, noise_text.render, chosen, output, found)


def check_arms(commands: dict[str, str]) -> None:
    """Raise an error for a command line whose script, module, command, workload or option does not exist, before any
    training is started."""
    for name, line in commands.items():
        kind, *words = words_of(line)
        try:
            _check_run(words) if kind == "run" else _check_train(words)
        except (click.ClickException, RlprofError) as error:
            problem = error.format_message() if isinstance(error, click.ClickException) else error
            raise RlprofError(f"{name} ({line}): {problem}") from error
        except click.exceptions.Exit as error:  # --help
            raise RlprofError(f"{name} ({line}) trains nothing.") from error


def _check_run(words: list[str]) -> None:
    given = run.make_context("run", words).params
    if given["module"]:
        _check_module(given["program"][0])
    else:
        (any_command if given["command"] else script_command)(given["program"])


def _check_module(name: str) -> None:
    """Look for each package in the one around it, without importing any."""
    folders: Sequence[str] | None = [os.getcwd(), *sys.path]  # where `python -m` looks first
    parts = name.split(".")
    for place, part in enumerate(parts):
        path = ".".join(parts[: place + 1])
        found = PathFinder.find_spec(path, folders)
        if found is None and place == 0:
            found = find_spec(part)  # a built-in or frozen module, or one that an import hook finds
        if found is None:
            raise RlprofError(f"There is no module {name}.")
        folders = found.submodule_search_locations
        if folders is None and path != name:
            raise RlprofError(f"There is no module {name}: {path} is not a package.")


def _check_train(words: list[str]) -> None:
    if not words:
        raise RlprofError("No workload is named. Write train WORKLOAD.")
    with click.Context(train, info_name="train") as context:
        name, found, rest = train.resolve_command(context, words)
        assert found is not None  # an unknown name has raised an error
        assert name is not None
        check_settings(find_workload(name), found.make_context(name, rest).params)

"""`rlprof run`: records a training script that was not edited."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from rlprof.cli import options
from rlprof.cli.help import Command, command, group, option
from rlprof.cli.top import dashboard
from rlprof.recording.environment import CONTROLLER
from rlprof.run.command import any_command, become, module_command, recorded_environment, script_command
from rlprof.run.supervise import supervise


class _Run(Command):
    """Remembers whether the program came after `--`, which click forgets."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = list(args)
        rest = super().parse_args(ctx, args)
        own = given[: len(given) - len(ctx.params["program"])]
        ctx.params["command"] = own[-1:] == ["--"]
        return rest


@command(
    cls=_Run,
    context_settings={"allow_interspersed_args": False},  # everything after the script belongs to the script
    options_metavar="[OPTIONS]",
    examples=(
        "rlprof run train.py --envs 8",
        "rlprof run --name baseline --summary-every 10 train.py",
        "rlprof run -m package.train --envs 8",
        "rlprof run --torch-profiler --torch-profiler-active 5 train.py",
        "rlprof run --top train.py",
        "rlprof run -- torchrun --nproc-per-node 2 train.py",
    ),
)
@option("-m", "module", is_flag=True, help="Run a module instead of a script, as python -m does.")
@options.recording("the script's name")
@group(
    "Output",
    options.summary_every,
    *options.files,
    option("--quiet", is_flag=True, help="Print no summary at the end of the run."),
    dashboard,
)
@options.alerts
@options.captures()
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED, metavar="SCRIPT [ARGS]... | -- COMMAND")
def run(
    program: tuple[str, ...],
    module: bool,
    command: bool,
    no_probes: bool,
    no_stacks: bool,
    quiet: bool,
    top: bool,
    **given: Any,
) -> None:
    """Run a training script unchanged and record it.

    Everything after the script is passed to the script. After --, give any command: every Python process that it
    starts is recorded.
    """
    for place in ("dir", "jsonl", "tensorboard", "flat"):
        if given[place] is not None:
            given[place] = str(Path(given[place]).absolute())  # the command may change its folder first
    given["captures"] = options.captures_of(given) or None
    given |= {
        "probes": False if no_probes else None,
        "stacks": False if no_stacks else None,
        "quiet": quiet or None,
    }
    options.start_watcher(given, quiet=top and sys.stderr.isatty())
    is_any = command and not module
    words = (any_command if is_any else module_command if module else script_command)(program)
    if top:
        _show(program[0], words, given, is_any)
    if is_any:
        supervise(words, given)
    become(words, given, is_python=True)


def _show(program: str, words: list[str], given: dict[str, Any], is_any: bool) -> None:
    """Run it below the dashboard, which never returns. Returns if there is no terminal for that."""
    from rlprof.top.start import NO_TERMINAL, on_terminal  # noqa: PLC0415 - slow to import, and rarely needed

    if CONTROLLER in os.environ:
        return  # an experiment controls the training, and reads its output
    if not on_terminal():
        click.echo(NO_TERMINAL, err=True)
        return
    from rlprof.top.training import run_with_dashboard  # noqa: PLC0415

    run_with_dashboard(Path(program).name, words, recorded_environment(given), not is_any, is_any)

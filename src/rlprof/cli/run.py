"""`rlprof run`: a training that was not edited, recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rlprof.cli.capture_options import captures_of, capturing
from rlprof.run.command import any_command, become, module_command, script_command
from rlprof.run.supervise import supervise


class _Run(click.Command):
    """Remembers whether the program came after a `--`, which click forgets."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = list(args)
        rest = super().parse_args(ctx, args)
        own = given[: len(given) - len(ctx.params["program"])]
        ctx.params["command"] = own[-1:] == ["--"]
        return rest


@click.command(
    cls=_Run,
    context_settings={"allow_interspersed_args": False},  # what follows the program is the program's
    options_metavar="[OPTIONS]",
)
@click.option("--name", help="Of the session; the program's unless told.")
@click.option("--dir", type=click.Path(), help="Where the session goes: RLPROF_DIR, or rlprof-runs here, unless told.")
@click.option("--summary-every", type=click.IntRange(1), metavar="N", help="Print a short table every N iterations.")
@click.option("--jsonl", type=click.Path(), help="A file that gets one JSON line an iteration.")
@click.option("--tensorboard", type=click.Path(), help="A folder that gets scalars an iteration.")
@click.option("--flat", type=click.Path(), help="A folder that gets raw/*.json and reports/*_summary.txt as well.")
@click.option("--timeline", type=click.IntRange(1), metavar="N", help="Keep up to N single spans between two flushes.")
@click.option("--no-probes", is_flag=True, help="Time only the spans that the program has itself.")
@click.option("--quiet", is_flag=True, help="Say nothing when the run has ended.")
@capturing
@click.option("-m", "module", is_flag=True, help="The program is a module: rlprof run -m package.module ARGS")
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED, metavar="SCRIPT ARGS | -- COMMAND")
def run(program: tuple[str, ...], module: bool, command: bool, no_probes: bool, quiet: bool, **told: Any) -> None:
    """Record a training that was not edited.

    Everything after the script is the script's. After -- comes any command: every Python that it starts is recorded.
    """
    for place in ("dir", "jsonl", "tensorboard", "flat"):
        if told[place] is not None:
            told[place] = str(Path(told[place]).absolute())  # the command may go elsewhere first
    told["captures"] = captures_of(told) or None
    told |= {"probes": False if no_probes else None, "quiet": quiet or None}
    if command and not module:
        supervise(any_command(program), told)
    become((module_command if module else script_command)(program), told)

"""`rlprof trace diff A B`."""

from __future__ import annotations

import click

from rlprof.cli import options
from rlprof.cli.help import command, option
from rlprof.cli.output import Formats, deliver, format_of
from rlprof.cli.trace.reading import no_limits, read_each
from rlprof.trace.analysis.diff import compare
from rlprof.trace.analysis.per_step import steps_of
from rlprof.trace.limits import Limits
from rlprof.trace.named import traces_named
from rlprof.trace.render.diff import render, to_text
from rlprof.trace.render.json import to_json

FORMATS: Formats = {"text": to_text, "json": to_json}


@command(examples=("rlprof trace diff before.json after.json", "rlprof trace diff 'runs/a*.json.gz' runs/b/"))
@click.argument("sides", nargs=-1, metavar="A B")
@option("--before", "-a", multiple=True, metavar="FILE", help="Trace of side A; repeatable.")
@option("--after", "-b", multiple=True, metavar="FILE", help="Trace of side B; repeatable.")
@options.format_(*FORMATS)
@options.output
@no_limits
def diff(
    sides: tuple[str, ...],
    before: tuple[str, ...],
    after: tuple[str, ...],
    format_: str | None,
    output: str | None,
    limits: Limits,
) -> None:
    """Show what differs per step between two trainings.

    Also shows whether a difference is more than noise. A and B are each a trace, a folder, a pattern
    ("runs/a*.json.gz") or a list (a1.json,a2.json). The noise is how much several traces of one side differ from each
    other.
    """
    if sides and (before or after):
        raise click.UsageError("Give the sides once, as A B or with --before and --after.")
    if sides and len(sides) != 2:
        raise click.UsageError(
            f"Give two sides, not {len(sides)}. For several traces per side, use --before and --after."
        )
    if sides:
        before, after = (tuple(side.split(",")) for side in sides)
    if not before or not after:
        raise click.UsageError("Give two sides: rlprof trace diff A B")
    chosen = format_ or format_of(output, FORMATS)
    found = compare(*(read_each(traces_named(side), steps_of, limits) for side in (before, after)))
    deliver(FORMATS, render, chosen, output, found)

"""`rlprof trace diff A B`."""

from __future__ import annotations

from functools import partial

import click

from rlprof.cli.output import show, write
from rlprof.cli.trace.files import no_limits, read_each, traces_named
from rlprof.cli.trace.summary import chosen_by
from rlprof.trace.analysis.diff import compare
from rlprof.trace.analysis.per_step import steps_of
from rlprof.trace.limits import Limits
from rlprof.trace.render.diff import render, to_text
from rlprof.trace.render.json import to_json


@click.command()
@click.argument("sides", nargs=-1, metavar="A B")
@click.option("--before", "-a", multiple=True, metavar="FILE", help="A trace of side A; may be given again.")
@click.option("--after", "-b", multiple=True, metavar="FILE", help="A trace of side B; may be given again.")
@click.option("--format", "format_", type=click.Choice(("text", "json")))
@click.option("--output", "-o", metavar="FILE", help="Write here instead of the terminal.")
@no_limits
def diff(
    sides: tuple[str, ...],
    before: tuple[str, ...],
    after: tuple[str, ...],
    format_: str | None,
    output: str | None,
    limits: Limits,
) -> None:
    """What differs between two trainings, a step, and whether that is more than noise.

    A and B are a trace each, or a folder, a pattern ("runs/a*.json.gz") or a list (a1.json,a2.json) of several. With
    several a side, noise is what the traces of one side differ by.
    """
    if sides and (before or after):
        raise click.UsageError("give the sides once: as A B, or with --before and --after")
    if sides and len(sides) != 2:
        raise click.UsageError(
            f"two sides are compared, not {len(sides)}; several traces a side are given with --before and --after"
        )
    if sides:
        before, after = (tuple(side.split(",")) for side in sides)
    if not before or not after:
        raise click.UsageError("give two sides: rlprof trace diff A B")
    found = compare(*(read_each(traces_named(side), steps_of, limits) for side in (before, after)))
    chosen = format_ or ("json" if chosen_by(output) == "json" else "text")
    if chosen == "text" and output is None:
        show(partial(render, found))
        return
    write(to_json(found) if chosen == "json" else to_text(found), output)
    if output is not None:
        click.echo(f"wrote {output}", err=True)

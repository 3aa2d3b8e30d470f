"""`rlprof trace summary FILE...`."""

from __future__ import annotations

from functools import partial

import click

from rlprof.cli.output import show, write
from rlprof.cli.trace.files import no_limits, read_each, traces_named
from rlprof.trace.analysis.summarize import summarize
from rlprof.trace.analysis.summary import SCHEMA_VERSION, Summary
from rlprof.trace.limits import Limits
from rlprof.trace.render.json import to_json
from rlprof.trace.render.text import render, to_text

FORMATS = ("text", "json", "html")


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--format", "format_", type=click.Choice(FORMATS), help="text unless --output's name says otherwise.")
@click.option("--output", "-o", metavar="FILE", help="Write here instead of the terminal.")
@no_limits
def summary(files: tuple[str, ...], format_: str | None, output: str | None, limits: Limits) -> None:
    """What took the time, on the host and on the GPU, and why the GPU was idle.

    FILE is a trace (*.pt.trace.json, gzipped or not), a folder of them, a session, or `last`. Several are the ranks of
    one training: they are compared, and the slowest is shown whole.
    """
    found = Summary(SCHEMA_VERSION, tuple(read_each(traces_named(files), summarize, limits)))
    chosen = format_ or chosen_by(output)
    if chosen == "text" and output is None:
        show(partial(render, found))
        return
    if chosen == "html":
        from rlprof.trace.render.html import to_html  # noqa: PLC0415 - only where it is asked for

        write(to_html(found), output)
    else:
        write(to_json(found) if chosen == "json" else to_text(found), output)
    if output is not None:
        click.echo(f"wrote {output}", err=True)


def chosen_by(output: str | None) -> str:
    """By the name's ending."""
    for ending in FORMATS[1:]:
        if output is not None and output.lower().endswith(f".{ending}"):
            return ending
    return "text"

"""`rlprof trace summary FILE...`."""

from __future__ import annotations

import click

from rlprof.cli import options
from rlprof.cli.help import command
from rlprof.cli.output import Formats, deliver, destination
from rlprof.cli.trace.reading import no_limits, read_each
from rlprof.trace.analysis.summarize import summarize
from rlprof.trace.analysis.summary import SCHEMA_VERSION, Summary
from rlprof.trace.limits import Limits
from rlprof.trace.named import traces_named
from rlprof.trace.render.json import to_json
from rlprof.trace.render.text import render, to_text


def to_html(found: Summary) -> str:
    from rlprof.trace.render import html as page  # noqa: PLC0415 - only where it is needed

    return page.to_html(found)


FORMATS: Formats = {"text": to_text, "json": to_json, "html": to_html}


@command(examples=("rlprof trace summary last", "rlprof trace summary rank*.pt.trace.json.gz --html ranks.html"))
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@options.format_(*FORMATS)
@options.output
@options.html
@no_limits
def summary(files: tuple[str, ...], format_: str | None, output: str | None, html: str | None, limits: Limits) -> None:
    """Show what took the time on the host and on the GPU.

    Also shows why the GPU was idle. FILE is a trace (*.pt.trace.json, gzipped or not), a folder of traces, a session,
    or `last`. Several traces are the ranks of one training: they are compared, and the slowest one is shown in full.
    """
    chosen, output = destination(FORMATS, format_, output, html)
    found = Summary(SCHEMA_VERSION, tuple(read_each(traces_named(files), summarize, limits)))
    deliver(FORMATS, render, chosen, output, found)

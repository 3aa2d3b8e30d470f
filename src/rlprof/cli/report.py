"""`rlprof report SESSION`: show where the time went."""

from __future__ import annotations

import gc
from contextlib import suppress
from functools import partial
from pathlib import Path

import click

from rlprof.analysis.facts import RUNNING
from rlprof.analysis.load import load_facts
from rlprof.analysis.report import SCHEMA_VERSION, Report, find
from rlprof.cli.output import show, write
from rlprof.report.files import RAW, write_files
from rlprof.report.formats import NAMES, renderer
from rlprof.report.text import render
from rlprof.session.folder import DATABASE, find_database


@click.command()
@click.argument("session", default="last")
@click.option("--format", "format_", type=click.Choice(NAMES), help="text unless --output's name says otherwise.")
@click.option("--output", "-o", metavar="FILE", help="Write here instead of the terminal.")
def report(session: str, format_: str | None, output: str | None) -> None:
    """Show where the time of a session went.

    SESSION is a session's folder, its session.db, a JSON report, or `last`, the newest one.
    """
    gc.disable()  # very many names are very many objects, and this process ends soon
    made = build(session)
    _leave_missing_files(session, made)
    chosen = format_ or format_of(output)
    if chosen == "text" and output is None:
        show(partial(render, made))
    else:
        write(renderer(chosen)(made), output)
        if output is not None:
            click.echo(f"wrote {output}", err=True)


def _leave_missing_files(given: str, made: Report) -> None:
    """raw.json and summary.txt of a run that ended before they were made, or on a disk that was full then."""
    folder = Path(given) if Path(given).is_dir() else find_database(given).parent
    if made.facts.ended != RUNNING and (folder / DATABASE).exists() and not (folder / RAW).exists():
        with suppress(OSError):  # they can be made elsewhere: --output
            write_files(folder, made)


def build(given: str, min_calls: int = 1) -> Report:
    """The report of whatever the user names."""
    facts = load_facts(given)
    return Report(SCHEMA_VERSION, facts, find(facts, min_calls))


_BY_SUFFIX = {
    "": "text", ".txt": "text", ".log": "text", ".html": "html", ".htm": "html", ".json": "json", ".csv": "csv",
    ".md": "markdown",
}  # fmt: skip


def format_of(output: str | None) -> str:
    """By the name's ending, one for compression left out. A device or a pipe has none."""
    suffix = Path((output or "").removesuffix(".gz")).suffix.lower()
    if suffix not in _BY_SUFFIX:
        raise click.UsageError(f"--output {output}: no report ends with {suffix}; say with --format what it shall be")
    return _BY_SUFFIX[suffix]

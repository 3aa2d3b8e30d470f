"""`rlprof report SESSION`: reports where the time of a session went."""

from __future__ import annotations

import gc
from contextlib import suppress
from pathlib import Path

import click

from rlprof.analysis.facts import UNENDED
from rlprof.analysis.load import load_facts
from rlprof.analysis.report import SCHEMA_VERSION, Report, find
from rlprof.cli import options
from rlprof.cli.help import command, option
from rlprof.cli.output import deliver, destination
from rlprof.report import first_screen
from rlprof.report.files import RAW, write_files
from rlprof.report.formats import NAMES, renderer
from rlprof.report.text import render
from rlprof.session.folder import DATABASE, find_database


@command(examples=("rlprof report", "rlprof report rlprof-runs/train_20260101-120000 --html report.html"))
@click.argument("session", default="last")
@options.format_(*NAMES)
@options.output
@options.html
@option("--full", is_flag=True, help="Show everything, not only the first screen. Only for text.")
def report(session: str, format_: str | None, output: str | None, html: str | None, full: bool) -> None:
    """Report where the time of a session went and what to change.

    SESSION is the folder of a session, its session.db, a JSON report, or `last`, the newest session (the default).
    """
    gc.disable()  # very many names are very many objects, and this process ends soon
    chosen, output = destination(NAMES, format_, output, html)
    if full and chosen != "text":
        raise click.UsageError("--full is for text only. The other formats always have everything.")
    made = build(session)
    _leave_missing_files(session, made)
    deliver({chosen: renderer(chosen)}, render if full else first_screen.render, chosen, output, made)


def _leave_missing_files(given: str, made: Report) -> None:
    """Write raw.json and summary.txt of a run that ended before they were written, or while the disk was full."""
    folder = Path(given) if Path(given).is_dir() else find_database(given).parent
    if made.facts.ended not in UNENDED and (folder / DATABASE).exists() and not (folder / RAW).exists():
        with suppress(OSError):  # the user can write them elsewhere with --output
            write_files(folder, made)


def build(given: str, min_calls: int = 1) -> Report:
    """The report of a session or of a JSON report."""
    facts = load_facts(given)
    return Report(SCHEMA_VERSION, facts, find(facts, min_calls))

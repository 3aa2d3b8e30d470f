"""`rlprof list`: the recorded sessions, newest first."""

from __future__ import annotations

from pathlib import Path

import click

from rlprof.cli import options
from rlprof.cli.help import command, option
from rlprof.cli.output import deliver, destination
from rlprof.list.sessions import list_sessions
from rlprof.list.text import render, to_json, to_text
from rlprof.session.folder import sessions_folder

FORMATS = {"text": to_text, "json": to_json}


@command(examples=("rlprof list", "rlprof list --dir old-runs --limit 100 --json"))
@options.dir_
@option("--limit", type=click.IntRange(1), default=20, help="Show the N newest sessions.")
@options.format_(*FORMATS)
@option("--json", "json", is_flag=True, help="The same as --format json.")
@options.output
def list(dir: str | None, limit: int, format_: str | None, json: bool, output: str | None) -> None:
    """List the recorded sessions, newest first.

    Shows when each started, how long it took, its steps per second, how it ended, and the program. A session that
    cannot be read is listed with the reason.
    """
    if json and format_ == "text":
        raise click.UsageError("--json means --format json. Leave out the other.")
    chosen, output = destination(FORMATS, "json" if json else format_, output, None)
    deliver(FORMATS, render, chosen, output, list_sessions(Path(dir) if dir else sessions_folder(), limit))

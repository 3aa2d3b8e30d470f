"""`rlprof stacks SESSION`: the Python stacks of all processes of a running training."""

from __future__ import annotations

import click

from rlprof.cli import options
from rlprof.cli.help import command
from rlprof.cli.output import deliver, destination
from rlprof.live.choose import running_session
from rlprof.live.stacks import request_stacks
from rlprof.live.stacks_text import Stacks, render, to_json, to_text
from rlprof.session.folder import find_database
from rlprof.session.live import LiveSession

FORMATS = {"text": to_text, "json": to_json}


@command(examples=("rlprof stacks", "rlprof stacks last --format json --output stacks.json"))
@click.argument("session", required=False)
@options.format_(*FORMATS)
@options.output
def stacks(session: str | None, format_: str | None, output: str | None) -> None:
    """Show which line of Python each thread of a running training is at.

    SESSION is the folder of a session, or `last`. The default is the newest session that is running. The stacks are
    those of the driver and of all worker processes, the most recent call last.
    """
    chosen, output = destination(FORMATS, format_, output, None)
    folder = running_session() if session is None else find_database(session).parent
    processes = request_stacks(folder)
    with LiveSession(folder) as opened:
        deliver(FORMATS, render, chosen, output, Stacks(folder.name, opened.info.folder, processes))

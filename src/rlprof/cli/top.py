"""`rlprof top`: what a training does right now, in the terminal."""

from __future__ import annotations

from functools import partial

import click

from rlprof.cli import options
from rlprof.cli.help import command, option
from rlprof.cli.output import show
from rlprof.errors import RlprofError

LEAST_INTERVAL = 0.2
dashboard_flags = ("--top", "--sanctum")
dashboard = option(
    *dashboard_flags[:1],
    aliases=dashboard_flags[1:],
    is_flag=True,
    help="Show the dashboard of rlprof top above the output.",
)
"""The option of the commands that start a training."""


def _interval(context: click.Context, parameter: click.Parameter, text: str) -> float:
    found = options.seconds(context, parameter, text)
    if found is None or found < LEAST_INTERVAL:
        raise click.BadParameter(f"{text} is shorter than {LEAST_INTERVAL} s.")
    return found


@command(examples=("rlprof top", "rlprof top last --interval 5", "rlprof top --once"))
@click.argument("session", required=False)
@option("--interval", callback=_interval, metavar="TIME", default="1s", help="Time between two readings.")
@option("--once", is_flag=True, help="Print one frame as text and exit.")
def top(session: str | None, interval: float, once: bool) -> None:
    """Watch a running training in the terminal.

    SESSION is the folder of a session, its session.db, or `last` (default: the newest session that is running, else
    the newest one). The dashboard reads the session only, so it cannot slow the training. Without a terminal, it
    prints one frame as --once does.
    """
    from rlprof.live.choose import running_session  # noqa: PLC0415 - `rlprof top --help` needs none of these
    from rlprof.live.feed import Feed  # noqa: PLC0415
    from rlprof.top.start import on_terminal, show_dashboard  # noqa: PLC0415

    feed = Feed(session if session is not None else running_session())
    if once or not on_terminal():
        from rlprof.top.once import render  # noqa: PLC0415

        feed.refresh(force=True)
        frame = feed.frame()
        feed.close()
        show(partial(render, frame, given=session))
        return
    reason = show_dashboard(feed, interval)
    if reason is not None:
        raise RlprofError(reason)

"""`rlprof capture SESSION`: captures a torch trace of a training that is already running."""

from __future__ import annotations

from contextlib import nullcontext

import click
from rich.console import Console

from rlprof.capture.captures import Request
from rlprof.capture.running import RunningCapture
from rlprof.cli import options
from rlprof.cli.help import command, group, option
from rlprof.session.folder import find_database


@command(examples=("rlprof capture", "rlprof capture last --active 5 --step iteration --record-shapes"))
@click.argument("session", default="last")
@group("", *options.torch_profiler("").values())
@option("--no-wait", is_flag=True, help="Return at once instead of waiting for the trace.")
def capture(session: str, step: str, warmup: int, active: int, no_wait: bool, **recorded: bool) -> None:
    """Capture some steps of a running training with torch.profiler.

    SESSION is the folder of a session, or `last` (the default). The capture begins with the next step, and the
    training goes on as before afterwards. The trace is written to traces/ in the session.
    """
    folder = find_database(session).parent
    request = Request(step=step, warmup_steps=warmup, active_steps=active, **recorded)
    running = RunningCapture(folder, request)
    steps = f"{active} steps ({step})"
    if no_wait:
        click.echo(f"requested a trace of {steps} from {folder.name}", err=True)
        return
    console = Console(stderr=True)
    with console.status(f"waiting for {steps} of {folder.name}") if console.is_terminal else nullcontext():
        trace = running.wait()
    click.echo(trace)

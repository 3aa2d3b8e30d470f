"""`rlprof capture SESSION`: captures a torch trace of a training that is already running."""

from __future__ import annotations

import gzip
import shutil
from contextlib import nullcontext
from pathlib import Path

import click
from rich.console import Console

from rlprof.capture.captures import Request
from rlprof.capture.running import RunningCapture
from rlprof.cli import options
from rlprof.cli.help import command, group, option
from rlprof.cli.output import writing
from rlprof.session.folder import find_database


@command(examples=("rlprof capture", "rlprof capture last --active 5 --step iteration --record-shapes"))
@click.argument("session", default="last")
@group("", *options.torch_profiler("").values())
@option(
    "--output", "-o", metavar="FILE", default_text="a file in the session",
    help="Write to FILE, compressed if it ends with .gz.",
)  # fmt: skip
@option("--no-wait", is_flag=True, help="Return at once instead of waiting for the trace.")
def capture(
    session: str, step: str, warmup: int, active: int, output: str | None, no_wait: bool, **recorded: bool
) -> None:
    """Capture some steps of a running training with torch.profiler.

    SESSION is the folder of a session, or `last` (the default). The capture begins with the next step, and the
    training goes on as before afterwards. The trace is written to traces/ in the session, and to --output.
    """
    if no_wait and output is not None:
        raise click.UsageError("--output needs the trace, and --no-wait does not wait for it.")
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
    if output is not None:
        _copy(Path(trace), Path(output))
    click.echo(output or trace)


def _copy(trace: Path, target: Path) -> None:
    with gzip.open(trace) if trace.suffix == ".gz" else trace.open("rb") as source, writing(target, trace) as file:
        shutil.copyfileobj(source, file)

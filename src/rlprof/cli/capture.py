"""`rlprof capture SESSION`: a torch trace of a training that runs already."""

from __future__ import annotations

import os
import time
from contextlib import nullcontext
from pathlib import Path

import click
import msgspec
from rich.console import Console

from rlprof.capture.captures import Request
from rlprof.capture.torch.capture import FAILED, TRACE
from rlprof.capture.torch.schedule import ITERATION, STEPS
from rlprof.errors import RlprofError
from rlprof.session.folder import REQUEST, find_database
from rlprof.session.process import runs
from rlprof.session.reader import Session

POLL_SECONDS = 0.25


@click.command()
@click.argument("session", default="last")
@click.option("--steps", type=click.IntRange(1), default=2, show_default=True, help="How many to capture.")
@click.option("--step", type=click.Choice(STEPS), default=ITERATION, show_default=True, help="What a step is.")
@click.option("--warmup", type=click.IntRange(0), default=1, show_default=True, help="Steps to warm up with.")
@click.option("--record-shapes", is_flag=True, help="With the shapes of tensors.")
@click.option("--profile-memory", is_flag=True, help="With allocations.")
@click.option("--with-stack", is_flag=True, help="With Python's stack; large and slow.")
@click.option("--no-wait", is_flag=True, help="Ask for it, and do not wait until it is there.")
def capture(session: str, steps: int, step: str, warmup: int, no_wait: bool, **options: bool) -> None:
    """Capture some steps of a running training with torch.profiler.

    SESSION is a session's folder or `last`. The training begins with its next step, goes on as before afterwards, and
    the trace is in the session's traces/.
    """
    folder = find_database(session).parent
    _check_running(folder)
    known, failed = set(_traces(folder)), len(_failures(folder))
    request = Request(step=step, warmup_steps=warmup, active_steps=steps, **options)
    part = folder / f".{REQUEST}.{os.getpid()}"
    part.write_bytes(msgspec.json.encode(request))
    part.replace(folder / REQUEST)
    if no_wait:
        click.echo(f"asked {folder.name} for a trace of {steps} {step} steps", err=True)
        return
    console = Console(stderr=True)
    waiting = console.status(f"waiting for {steps} {step} steps of {folder.name}") if console.is_terminal else None
    try:
        with waiting or nullcontext():
            while True:
                running = _is_running(folder)  # before looking: what comes last comes before the end
                made = [path for path in _traces(folder) if path not in known]
                if made:
                    break
                if len(failures := _failures(folder)) > failed:
                    raise RlprofError(f"{folder} could not be captured: {failures[-1]}")
                if not running:
                    raise RlprofError(
                        f"{folder} ended before it had {warmup + steps} {step} steps more; there is no trace"
                    )
                time.sleep(POLL_SECONDS)
    finally:
        (folder / REQUEST).unlink(missing_ok=True)  # where nobody has taken it
    click.echo(made[0])


def _traces(folder: Path) -> list[Path]:
    with Session(folder) as session:
        return [folder / artifact.path for artifact in session.artifacts() if artifact.kind == TRACE]


def _failures(folder: Path) -> list[str]:
    with Session(folder) as session:
        return [mark.text for mark in session.marks() if mark.kind == FAILED]


def _is_running(folder: Path) -> bool:
    with Session(folder) as session:
        if session.end is not None:
            return False
        return runs(session.info.pid, session.info.process, session.info.started)


def _check_running(folder: Path) -> None:
    if not _is_running(folder):
        raise RlprofError(f"{folder} does not run any more; give a session whose training is under way")

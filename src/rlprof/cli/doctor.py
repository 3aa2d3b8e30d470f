"""`rlprof doctor`: is this machine set up right, and how fast is it?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import click
import msgspec
from rich.console import Console
from rich.live import Live
from rich.text import Text

from rlprof.cli.output import show
from rlprof.doctor.machine.machine import measure_machine
from rlprof.doctor.rules import judge
from rlprof.doctor.text import render

JSON_VERSION = 1
"""Of the keys of --json, which docs/doctor.md lists: it goes up when one changes its meaning or goes away."""


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print everything measured, and the remarks, as JSON.")
@click.option("--quick", is_flag=True, help="In about a second: without torch and without starting processes.")
def doctor(as_json: bool, quick: bool) -> None:
    """Measure this machine and say what is set up badly.

    Takes some seconds, of which two or three keep every core busy. What it finds does not change the exit code.
    """
    with _progress() as tell:
        machine = measure_machine(quick, tell)
    remarks = judge(machine)
    if as_json:
        encoded = msgspec.json.encode({"version": JSON_VERSION, "machine": machine, "remarks": remarks})
        click.echo(msgspec.json.format(encoded, indent=2))
    else:
        show(partial(render, machine, remarks))


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """What is measured now, on stderr where that is a terminal. Drawn only when told: a spinner would disturb."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield lambda what: live.update(Text(f"Measuring {what} ..."), refresh=True)

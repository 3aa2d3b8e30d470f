"""`rlprof doctor`: is this machine set up right, and how fast is it?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
from rich.console import Console
from rich.live import Live
from rich.text import Text

from rlprof.cli import options
from rlprof.cli.help import command, option
from rlprof.cli.output import deliver, format_of
from rlprof.doctor.machine.machine import measure_machine
from rlprof.doctor.rules import judge
from rlprof.doctor.text import render, to_text

JSON_VERSION = 2
"""Version of the JSON keys that docs/doctor.md lists. It goes up when a key changes its meaning or goes away."""


def to_json(machine: Any, findings: Any) -> str:
    encoded = msgspec.json.encode({"version": JSON_VERSION, "machine": machine, "findings": findings})
    return msgspec.json.format(encoded, indent=2).decode() + "\n"


FORMATS = {"text": to_text, "json": to_json}


@command(examples=("rlprof doctor", "rlprof doctor --quick --format json"))
@options.format_(*FORMATS)
@options.output
@option("--quick", is_flag=True, help="Take about a second: skip torch and start no processes.")
def doctor(format_: str | None, output: str | None, quick: bool) -> None:
    """Check this machine for settings that slow trainings down.

    Takes a few seconds, two or three of them with every core busy. The findings do not change the exit code.
    """
    chosen = format_ or format_of(output, FORMATS)
    with _progress() as report:
        machine = measure_machine(quick, report)
    deliver(FORMATS, render, chosen, output, machine, judge(machine))


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """Show what is being measured, on stderr if that is a terminal. A spinner would disturb the measurement."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield lambda what: live.update(Text(f"Measuring {what} ..."), refresh=True)

"""The options with which a training is captured in more detail: `rlprof run` and `rlprof train` have them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from rlprof.capture.torch.schedule import EPOCH, STEPS

Command = TypeVar("Command", bound=Callable[..., Any])

_COUNT = click.IntRange(0)
_OPTIONS = (
    click.option("--torch-profiler", is_flag=True, help="Capture some steps with torch.profiler."),
    click.option("--torch-profiler-dir", type=click.Path(), help="Where its traces go: the session's traces/."),
    click.option(
        "--torch-profiler-step", type=click.Choice(STEPS), default=EPOCH, show_default=True, help="What a step is."
    ),
    click.option("--torch-profiler-wait", type=_COUNT, default=1, show_default=True, help="Steps before it begins."),
    click.option("--torch-profiler-warmup", type=_COUNT, default=1, show_default=True, help="Steps to warm up with."),
    click.option(
        "--torch-profiler-active", type=click.IntRange(1), default=3, show_default=True, help="Steps to capture."
    ),
    click.option("--torch-profiler-repeat", type=click.IntRange(1), default=1, show_default=True, help="How often."),
    click.option("--torch-profiler-record-shapes", is_flag=True, help="With the shapes of tensors."),
    click.option("--torch-profiler-profile-memory", is_flag=True, help="With allocations."),
    click.option("--torch-profiler-with-stack", is_flag=True, help="With Python's stack; large and slow."),
    click.option("--torch-profiler-summary", is_flag=True, help="Print what the last trace says at the end."),
    click.option("--cprofile", "--detailed", is_flag=True, help="Profile Python's functions with cProfile."),
    click.option("--sample", is_flag=True, help="Sample Python's stack with pyinstrument; costs less."),
    click.option(
        "--phase", "phases", multiple=True, metavar="NAME",
        help="With --cprofile or --sample: only inside this operation, in files of its own; may be given again.",
    ),
)  # fmt: skip


def capturing(command: Command) -> Command:
    """Adds the options."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def captures_of(told: dict[str, Any]) -> dict[str, Any]:
    """Takes them out of what a command was told; what is left of them is for `rlprof.run`. Empty: none was asked
    for."""
    torch = {
        name.removeprefix("torch_profiler_"): told.pop(name)
        for name in list(told)
        if name.startswith("torch_profiler_")
    }
    asked: dict[str, Any] = {}
    if told.pop("torch_profiler"):
        folder = torch.pop("dir")
        asked["torch"] = {
            "dir": None if folder is None else str(Path(folder).absolute()),
            "wait_steps": torch.pop("wait"),
            "warmup_steps": torch.pop("warmup"),
            "active_steps": torch.pop("active"),
            **torch,
        }
    phases = told.pop("phases")
    for how in ("cprofile", "sample"):
        if told.pop(how):
            asked[how] = list(phases)
    if phases and not ("cprofile" in asked or "sample" in asked):
        raise click.UsageError("--phase says what --cprofile or --sample is for; give one of them")
    if "cprofile" in asked and "sample" in asked:
        raise click.UsageError("--cprofile and --sample would measure each other; give one of them")
    return asked

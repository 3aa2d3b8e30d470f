"""Options that several commands share: each has one name, one meaning and one default."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from typing import Any

import click

from rlprof.capture.torch.schedule import EPOCH, STEPS
from rlprof.cli.help import Decorated, Decorator, group, option
from rlprof.recording.environment import CONTROLLER

_UNITS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600}


def seconds(_context: click.Context, _option: click.Parameter, text: str | None) -> float | None:
    """`90`, `90s`, `10m`, `1h`."""
    if text is None:
        return None
    found = re.fullmatch(r"(\d+\.?\d*)\s*(\w*)", text)
    if found is None or found[2] not in _UNITS:
        raise click.BadParameter(f"{text} is not a time. Write 90s, 10m or 1h.")
    time = float(found[1]) * _UNITS[found[2]]
    if not 0 < time < math.inf:
        raise click.BadParameter(f"{text} is not a time above zero. Write 90s, 10m or 1h.")
    return time


def share(_context: click.Context, _option: click.Parameter, text: str | None) -> float | None:
    """`5%` or `5`: from zero to less than 100 %."""
    if text is None:
        return None
    try:
        percent = float(text.removesuffix("%"))
    except ValueError as error:
        raise click.BadParameter(f"{text} is not a percentage. Write 5%.") from error
    if not 0 <= percent < 100:  # nan is refused, too
        raise click.BadParameter(f"{text} is not a percentage between 0 and 100. Write 5%.")
    return percent / 100


def precision(context: click.Context, option: click.Parameter, text: str) -> float:
    """The same above zero, because no interval has no width."""
    found = share(context, option, text)
    if not found:
        raise click.BadParameter(f"{text} is never reached. Write 2%.")
    return found


# Output

output = option(
    "--output", "-o", metavar="FILE", help="Write to FILE instead of the terminal, compressed if it ends with .gz."
)


html = option("--html", metavar="FILE", help="The same as --format html --output FILE.")


def format_(*names: str) -> Decorator:
    """The option --format. Its default is the ending of --output, or else text."""
    return option(
        "--format", "format_", type=click.Choice(names), default_text="by the ending of --output, else text",
        help="Output format.",
    )  # fmt: skip


# Experiments

max_time = option("--max-time", callback=seconds, metavar="TIME", default="10m", help="Stop after this time.")
patience = option(
    "--patience", callback=seconds, metavar="TIME", default_text="10m, or --max-time if that is shorter",
    help="Give up on a training that takes longer than this to start or to finish one iteration.",
)  # fmt: skip

# Recording

dir_ = option(
    "--dir", "dir", type=click.Path(), metavar="FOLDER", default_text="$RLPROF_DIR or ./rlprof-runs",
    help="Folder for sessions.",
)  # fmt: skip
_probes = option("--no-probes", is_flag=True, help="Time only the spans that the program defines itself.")
_stacks = option("--no-stacks", is_flag=True, help="Do not sample which lines of Python run.")
_timeline = option(
    "--timeline", type=click.IntRange(1), help="Keep up to N single spans per second, for rlprof export."
)


def recording(default_name: str, *more: Decorator, aliases: tuple[str, ...] = ()) -> Decorator:
    name = option("--name", "name", aliases=aliases, metavar="NAME", default_text=default_name, help="Session name.")
    return group("Recording", *more, name, dir_, _timeline, _probes, _stacks)


summary_every = option("--summary-every", type=click.IntRange(1), help="Print a short table every N iterations.")
files = (
    option("--jsonl", type=click.Path(), metavar="FILE", help="Write one JSON line per iteration to FILE."),
    option("--tensorboard", type=click.Path(), metavar="FOLDER", help="Write scalars per iteration for TensorBoard."),
    option("--flat", type=click.Path(), metavar="FOLDER", help="Also write raw/*.json and reports/*_summary.txt."),
)

# Alerts of an unattended training: `rlprof run` and `rlprof train`

alerts = group(
    "Alerts",
    option(
        "--alert", "alerts", multiple=True, metavar="CONDITION",
        help="Print a line and mark the session when CONDITION holds, such as 'memory > 20GB', "
        "'steps_per_second < 80% of first hour' or 'stuck'; repeatable.",
    ),
    option(
        "--alert-command", metavar="COMMAND",
        help="Run COMMAND in a shell for each alert. $RLPROF_ALERT has its text.",
    ),
)  # fmt: skip


def start_watcher(given: dict[str, Any], quiet: bool = False) -> None:
    """Take the options of alerts out of a command's options, and start their watcher if there are any. The training
    begins next, in this process or in one that it starts. `quiet`: print no lines, because a dashboard shows them."""
    conditions, command = given.pop("alerts"), given.pop("alert_command")
    if command is not None and not conditions:
        raise click.UsageError("--alert-command needs --alert CONDITION.")
    if not conditions or CONTROLLER in os.environ:  # an experiment runs many trainings, and watches each itself
        return
    from rlprof.live.conditions import parse  # noqa: PLC0415 - hardly ever needed
    from rlprof.live.watch import start  # noqa: PLC0415

    for condition in conditions:
        parse(condition)  # refuse a wrong one before the training, not beside it
    start(conditions, command, quiet)


# Captures: `rlprof capture` has the same options as `rlprof run`, without the prefix.


def torch_profiler(prefix: str) -> dict[str, Decorator]:
    """The options of a torch trace, by name. Their flags begin with the prefix."""
    return {
        "step": option(f"--{prefix}step", type=click.Choice(STEPS), default=EPOCH, help="What one step is."),
        "warmup": option(f"--{prefix}warmup", type=click.IntRange(0), default=1, help="Warm up for N steps."),
        "active": option(f"--{prefix}active", type=click.IntRange(1), default=3, help="Capture N steps."),
        "record_shapes": option(f"--{prefix}record-shapes", is_flag=True, help="Record the shapes of tensors."),
        "profile_memory": option(f"--{prefix}profile-memory", is_flag=True, help="Record allocations of memory."),
        "with_stack": option(f"--{prefix}with-stack", is_flag=True, help="Record Python stacks; large and slow."),
    }


def captures(cprofile_aliases: tuple[str, ...] = ()) -> Decorator:
    """The options of torch.profiler and of the Python profilers."""
    torch = torch_profiler("torch-profiler-")
    traces = group(
        "torch.profiler",
        option("--torch-profiler", is_flag=True, help="Capture some steps with torch.profiler."),
        torch.pop("step"),
        option("--torch-profiler-wait", type=click.IntRange(0), default=1, help="Let N steps pass first."),
        torch.pop("warmup"),
        torch.pop("active"),
        option("--torch-profiler-repeat", type=click.IntRange(1), default=1, help="Repeat the cycle N times."),
        option(
            "--torch-profiler-dir", type=click.Path(), metavar="FOLDER", default_text="traces/ in the session",
            help="Folder for traces.",
        ),
        *torch.values(),
        option("--torch-profiler-summary", is_flag=True, help="Print a summary of the last trace at the end."),
    )  # fmt: skip
    python = group(
        "Python profilers",
        option("--cprofile", aliases=cprofile_aliases, is_flag=True, help="Profile Python functions with cProfile."),
        option("--sample", is_flag=True, help="Sample Python stacks with pyinstrument; costs less than cProfile."),
        option(
            "--phase", "phases", multiple=True, metavar="NAME",
            help="Profile only inside this operation, into files of its own; repeatable.",
        ),
    )  # fmt: skip

    def decorate(decorated: Decorated) -> Decorated:
        return traces(python(decorated))

    return decorate


def captures_of(given: dict[str, Any]) -> dict[str, Any]:
    """Take the capture options out of a command's options. Returns the requested captures."""
    torch = {
        name.removeprefix("torch_profiler_"): given.pop(name)
        for name in list(given)
        if name.startswith("torch_profiler_")
    }
    requested: dict[str, Any] = {}
    if given.pop("torch_profiler"):
        folder = torch.pop("dir")
        requested["torch"] = {
            "dir": None if folder is None else str(Path(folder).absolute()),
            "wait_steps": torch.pop("wait"),
            "warmup_steps": torch.pop("warmup"),
            "active_steps": torch.pop("active"),
            **torch,
        }
    phases = given.pop("phases")
    for how in ("cprofile", "sample"):
        if given.pop(how):
            requested[how] = list(phases)
    if phases and not ("cprofile" in requested or "sample" in requested):
        raise click.UsageError("--phase needs --cprofile or --sample.")
    if "cprofile" in requested and "sample" in requested:
        raise click.UsageError("--cprofile and --sample would measure each other. Choose one of them.")
    return requested

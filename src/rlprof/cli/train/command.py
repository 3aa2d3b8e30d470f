"""The command of one reference workload: its settings as flags, and the options that all workloads have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rlprof.cli import options as shared
from rlprof.cli.help import Command, Option, command, group, option
from rlprof.cli.top import dashboard
from rlprof.cli.train.compare import compare_cure
from rlprof.cli.train.options import given, options_of, spread
from rlprof.cli.train.run import run
from rlprof.cli.train.top import show_training
from rlprof.compare.paired import MOST_PAIRS
from rlprof.workloads.settings import Settings, make_settings, read_config, read_overrides
from rlprof.workloads.workload import Workload

_PROFILE = option(
    "--profile/--no-profile", aliases=["--enable-profiling/--no-profiling"], default=True, default_text="on",
    help="Record the training.",
)  # fmt: skip
_OUTPUT = (
    shared.summary_every,
    option("--profiling-summary-freq", "summary_steps", type=click.IntRange(1), hidden=True,
           help="Print a short table every N environment steps."),
    *shared.files,
    option("--breakdown", is_flag=True, help="Print where the time went at the end."),
    option(
        "--report", "reports", aliases=["--profiling-report"], type=click.Path(), multiple=True, metavar="FILE",
        help="Write a report, as .html, .json, .md, .csv or .txt; repeatable.",
    ),
    option("--progress/--no-progress", aliases=[" /--no-tui"], default=True, default_text="on",
           help="Show progress as a bar, or as lines where there is no terminal."),
    dashboard,
)  # fmt: skip
_EXPERIMENTS = (
    option("--compare", is_flag=True,
           help="Compare the workload without and with its cure, for at most two minutes."),
    option("--pairs", type=click.IntRange(1), default_text=str(MOST_PAIRS),
           help="Run at most N pairs of processes for --compare, without the limit of two minutes."),
    option("--expect", is_flag=True,
           help="Measure the parts in isolation afterwards, and report how fast the training should have been."),
)  # fmt: skip
_CONFIG: dict[str, Any] = {
    "type": click.Path(exists=True, dir_okay=False),
    "metavar": "FILE",
    "help": "YAML or JSON file of settings.",
}


_WORDS = "rlprof.train.words"
"""Key under which click keeps the arguments as they were given."""


class _Train(Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_WORDS] = list(args)
        options = [param for param in self.params if isinstance(param, click.Option)]
        return super().parse_args(ctx, spread(options, args))


def command_of(workload: Workload, help: str) -> click.Command:
    def train(words: tuple[str, ...], config: str | None, **options: Any) -> None:
        compare, pairs, top = options.pop("compare"), options.pop("pairs"), options.pop("top")
        settings = _settings(workload, words, config, options)
        if top and (compare or not options["profile"]):
            raise click.UsageError(
                f"--top shows a recorded training. Leave out {'--compare' if compare else '--no-profile'}."
            )
        if top:
            show_training(workload.name, click.get_current_context().meta[_WORDS])
        if compare:
            compare_cure(workload, settings, pairs, options["breakdown"], options["cprofile"])
            return
        if options["alerts"] and not options["profile"]:
            raise click.UsageError("--no-profile records nothing, so no --alert can be watched.")
        shared.start_watcher(options)
        run(workload, settings, **_requested(settings, workload, options))

    train.__doc__ = (
        f"{help}\n\nEvery setting can also be given as KEY=VALUE after the options, or as a key of the --config file."
    )
    train = shared.alerts(shared.captures(cprofile_aliases=("--detailed",))(train))
    train = group("Output", *_OUTPUT)(group("Experiments", *_EXPERIMENTS)(train))
    train = shared.recording("the workload's name", _PROFILE, aliases=("--profile-name",))(train)
    cure = workload.cure.replace("_", "-")
    examples = (
        f"rlprof train {workload.name} --breakdown seed=3",
        f"rlprof train {workload.name} --{cure} --report report.html",
        f"rlprof train {workload.name} --compare",
    )
    made = command(workload.name, cls=_Train, examples=examples)(train)
    settings = [*options_of(workload.settings), Option(["--config"], aliases=["--config-json"], **_CONFIG)]
    for setting in settings:
        setting.group = "Settings"
    made.params[:0] = settings
    made.params.append(click.Argument(["words"], nargs=-1, metavar="[KEY=VALUE]..."))
    return made


def check_settings(workload: Workload, options: dict[str, Any]) -> None:
    """Raise RlprofError for settings that the workload would refuse. `options` are all of its command."""
    others = {name: value for name, value in options.items() if name not in ("words", "config")}
    _settings(workload, options["words"], options["config"], others)


def _settings(workload: Workload, words: tuple[str, ...], config: str | None, options: dict[str, Any]) -> Settings:
    layers: list[tuple[str, dict[str, Any]]] = [] if config is None else [(config, read_config(Path(config)))]
    layers.append(("the flags", given(workload.settings, options)))
    if words:
        layers.append((" ".join(words), read_overrides(words)))
    return make_settings(workload.settings, *layers)


def _requested(settings: Settings, workload: Workload, options: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `run` for these options."""
    steps = options.pop("summary_steps")
    if steps is not None and options["summary_every"] is None:
        options["summary_every"] = max(1, round(steps / settings.steps_per_iteration))
    captures = shared.captures_of(options)
    afterwards = {name: options.pop(name) for name in ("breakdown", "reports", "expect", "progress")}
    profile = options.pop("profile")
    if not profile and (captures or afterwards["breakdown"] or afterwards["reports"]):
        raise click.UsageError("--no-profile records nothing, so there is nothing to capture, break down or report.")
    options["name"] = options["name"] or settings.session_name or workload.name
    options["probes"] = not options.pop("no_probes")
    options["stacks"] = not options.pop("no_stacks")
    if captures:
        options["captures"] = captures
    recording = {name: value for name, value in options.items() if value is not None} if profile else None
    return {"options": recording, **afterwards}

"""The command of one reference training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rlprof.cli.capture_options import captures_of, capturing
from rlprof.cli.train.compare import compare_cure
from rlprof.cli.train.options import given, options_of, spread
from rlprof.cli.train.run import Asked, run
from rlprof.workloads.settings import Settings, make_settings, read_config, read_overrides
from rlprof.workloads.workload import Workload

_RECORDING = (
    click.option(
        "--profile/--no-profile", "--enable-profiling/--no-profiling", default=True, help="Record it, or only train."
    ),
    click.option("--profile-name", "name", help="Of the session; the workload's unless told."),
    click.option("--profile-dir", "dir", type=click.Path(), help="Where the session goes: rlprof-runs unless told."),
    click.option("--summary-every", type=click.IntRange(1), metavar="N", help="A short table every N iterations."),
    click.option(
        "--profiling-summary-freq", "summary_steps", type=click.IntRange(1), metavar="N",
        help="The same, every N environment steps.",
    ),
    click.option("--jsonl", type=click.Path(), help="A file that gets one JSON line an iteration."),
    click.option("--tensorboard", type=click.Path(), help="A folder that gets scalars an iteration."),
    click.option("--flat", type=click.Path(), help="A folder that gets raw/*.json and reports/*_summary.txt as well."),
    click.option("--timeline", type=click.IntRange(1), metavar="N", help="Keep up to N spans between two flushes."),
    click.option("--no-probes", is_flag=True, help="Time only the spans that the training has itself."),
)  # fmt: skip

_AFTERWARDS = (
    click.option("--breakdown", is_flag=True, help="Print where the time went."),
    click.option(
        "--report", "--profiling-report", "reports", type=click.Path(), multiple=True, metavar="FILE",
        help="Write a report; the ending says what: .html .json .md .csv .txt",
    ),
    click.option("--expect", is_flag=True, help="Then measure its parts alone, and say how fast it should have been."),
    click.option("--compare", is_flag=True, help="Compare it without its cure and with it, in processes by turns."),
    click.option(
        "--pairs", type=click.IntRange(1), help="Of processes, with --compare: six, but no longer than two minutes."
    ),
    click.option("--progress/--no-progress", " /--no-tui", default=True, help="A bar, or lines in a file."),
)  # fmt: skip


class _Train(click.Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options = [param for param in self.params if isinstance(param, click.Option)]
        return super().parse_args(ctx, spread(options, args))


def command_of(workload: Workload, help: str) -> click.Command:
    """Its settings as flags, and what is common to all."""

    def train(words: tuple[str, ...], config: str | None, **told: Any) -> None:
        compare, pairs = told.pop("compare"), told.pop("pairs")
        settings = _settings(workload, words, config, told)
        if compare:
            compare_cure(workload, settings, pairs, told["breakdown"], told["cprofile"])
            return
        run(workload, settings, _asked(settings, workload, told))

    train.__doc__ = f"{help}\n\nEvery setting is also key=value, and a key of --config; flags go before key=value."
    for option in reversed((*_RECORDING, *_AFTERWARDS)):
        train = option(capturing(train) if option is _AFTERWARDS[-1] else train)
    command = click.command(workload.name, cls=_Train)(train)
    command.params[:0] = [
        *options_of(workload.settings),
        click.Option(
            ["--config", "--config-json"],
            type=click.Path(exists=True, dir_okay=False),
            help="A YAML or JSON file of settings.",
        ),
    ]
    command.params.append(click.Argument(["words"], nargs=-1, metavar="[KEY=VALUE ...]"))
    return command


def _settings(workload: Workload, words: tuple[str, ...], config: str | None, told: dict[str, Any]) -> Settings:
    layers: list[tuple[str, dict[str, Any]]] = [] if config is None else [(config, read_config(Path(config)))]
    layers.append(("the flags", given(workload.settings, told)))
    if words:
        layers.append((" ".join(words), read_overrides(words)))
    return make_settings(workload.settings, *layers)


def _asked(settings: Settings, workload: Workload, told: dict[str, Any]) -> Asked:
    steps = told.pop("summary_steps")
    if steps is not None and told["summary_every"] is None:
        told["summary_every"] = max(1, round(steps / settings.steps_per_iteration))
    captures = captures_of(told)
    afterwards = {name: told.pop(name) for name in ("breakdown", "reports", "expect", "progress")}
    profile = told.pop("profile")
    if not profile and (captures or afterwards["breakdown"] or afterwards["reports"]):
        raise click.UsageError("--no-profile leaves nothing to capture, break down or report")
    told["name"] = told["name"] or settings.session_name or workload.name
    told["probes"] = not told.pop("no_probes")
    if captures:
        told["captures"] = captures
    recording = {name: value for name, value in told.items() if value is not None} if profile else None
    return Asked(recording, **afterwards)

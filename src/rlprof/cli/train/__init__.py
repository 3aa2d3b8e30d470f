"""`rlprof train WORKLOAD`: trains a reference workload."""

from __future__ import annotations

import click

from rlprof.cli.help import LazyGroup
from rlprof.cli.train.command import command_of
from rlprof.workloads import WORKLOADS, find_workload


def _load(name: str) -> click.Command:
    return command_of(find_workload(name), WORKLOADS[name])


@click.group(
    cls=LazyGroup, lines=WORKLOADS, load=_load, title="Workloads",
    options_metavar="", subcommand_metavar="WORKLOAD [OPTIONS] [KEY=VALUE]...",
)  # fmt: skip
def train() -> None:
    """Train one of the reference workloads and record it.

    Each workload has a bottleneck and a flag that removes it. See rlprof train WORKLOAD --help for its settings.
    """

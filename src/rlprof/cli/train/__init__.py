"""`rlprof train WORKLOAD`: trains a reference workload."""

from __future__ import annotations

import click

from rlprof.cli.train.command import command_of
from rlprof.workloads import WORKLOADS, find_workload


class _Workloads(click.Group):
    """Imports a workload only when it is named."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(WORKLOADS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in WORKLOADS:
            return None
        return command_of(find_workload(cmd_name), WORKLOADS[cmd_name])

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Workloads"):
            formatter.write_dl(list(WORKLOADS.items()))


@click.group(cls=_Workloads, subcommand_metavar="WORKLOAD [OPTIONS] [KEY=VALUE]...")
def train() -> None:
    """Train one of the reference workloads and record it.

    Each workload has a bottleneck and a flag that removes it. See rlprof train WORKLOAD --help for its settings.
    """

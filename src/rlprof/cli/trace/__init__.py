"""`rlprof trace`: summarizes, diffs, cuts and opens torch traces."""

from __future__ import annotations

import click

from rlprof.cli.help import Group
from rlprof.cli.trace.cut import cut
from rlprof.cli.trace.diff import diff
from rlprof.cli.trace.open import open_
from rlprof.cli.trace.summary import summary


@click.group(cls=Group, subcommand_metavar="COMMAND [ARGS]...")
def trace() -> None:
    """Read torch traces: summarize, diff, cut, or open in Perfetto.

    Reads traces of every torch.profiler version, of CPU, CUDA or ROCm, gzipped or not.
    """


for command in (summary, diff, open_, cut):
    trace.add_command(command)

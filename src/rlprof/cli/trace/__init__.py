"""`rlprof trace`: what a torch trace says, how two differ, a look at one, a piece of one."""

from __future__ import annotations

import click

from rlprof.cli.trace.cut import cut
from rlprof.cli.trace.diff import diff
from rlprof.cli.trace.open import open_
from rlprof.cli.trace.summary import summary


@click.group()
def trace() -> None:
    """Read traces of torch.profiler: any year's, of CPU, CUDA or ROCm, gzipped or plain."""


for command in (summary, diff, open_, cut):
    trace.add_command(command)

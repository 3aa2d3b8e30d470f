"""`rlprof trace cut FILE`."""

from __future__ import annotations

from pathlib import Path

import click

from rlprof.analysis.figures import count, size
from rlprof.cli.help import command, option
from rlprof.cli.output import writing
from rlprof.cli.trace.reading import no_limits, showing
from rlprof.trace.analysis.selection import selected
from rlprof.trace.cut import write_cut
from rlprof.trace.limits import Limits
from rlprof.trace.read import read_trace


@command(examples=("rlprof trace cut large.pt.trace.json.gz --step 12 --step 13 -o small.json.gz",))
@click.argument("file", metavar="FILE")
@option("--step", "steps", multiple=True, type=int, help="Keep step number N; repeatable.")
@option("--phase", "phases", multiple=True, metavar="NAME", help="Keep the phases of this name; repeatable.")
@option("--output", "-o", required=True, metavar="FILE", help="Write to FILE, compressed if it ends with .gz.")
@no_limits
def cut(file: str, steps: tuple[int, ...], phases: tuple[str, ...], output: str, limits: Limits) -> None:
    """Cut a small trace out of a large one.

    The small trace has the chosen steps and phases, and what they launched on the GPU.
    """
    if not steps and not phases:
        raise click.UsageError("Choose what to keep with --step N, --phase NAME, or both.")
    path, target = Path(file), Path(output)
    with showing(f"reading {path.name}", path) as progress:
        trace = read_trace(path, progress, places=True, limits=limits)
    for problem in trace.problems:
        click.echo(f"rlprof: {path}: {problem}", err=True)
    rows = selected(trace, steps, phases)
    note = {"from": path.name, "steps": steps, "phases": phases, "events": len(rows), "of": len(trace.kind)}
    with writing(target, path) as out, showing(f"writing {target.name}", path) as progress:
        write_cut(trace, rows, note, out, progress)
    click.echo(
        f"wrote {output}: {count(len(rows))} of {count(len(trace.kind))} events, {size(target.stat().st_size)}",
        err=True,
    )

"""`rlprof trace cut FILE`."""

from __future__ import annotations

from pathlib import Path

import click

from rlprof.analysis.figures import count, size
from rlprof.cli.output import writing
from rlprof.cli.trace.files import no_limits, showing
from rlprof.trace.analysis.selection import selected
from rlprof.trace.cut import write_cut
from rlprof.trace.limits import Limits
from rlprof.trace.read import read_trace


@click.command()
@click.argument("file", metavar="FILE")
@click.option("--step", "steps", multiple=True, type=int, metavar="N", help="Keep this step; may be given again.")
@click.option("--phase", "phases", multiple=True, metavar="NAME", help="Keep this annotation; may be given again.")
@click.option("--output", "-o", required=True, metavar="FILE", help="The small trace; gzipped where it ends with .gz.")
@no_limits
def cut(file: str, steps: tuple[int, ...], phases: tuple[str, ...], output: str, limits: Limits) -> None:
    """Make a small trace of one that is too large to open: some steps, some phases, and what they launched."""
    if not steps and not phases:
        raise click.UsageError("say what to keep: --step N, --phase NAME, or both")
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

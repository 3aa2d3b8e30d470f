"""`rlprof analyze --input FILE`: bottlenecks, scores, recommendations. Also `python -m rlprof.analyze`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec

from rlprof.analysis.report import Report
from rlprof.cli.output import show, write, write_file
from rlprof.cli.report import build
from rlprof.report.analyzer import render, to_text


@click.command()
@click.argument("session", required=False)
@click.option("--input", "input_", metavar="FILE", help="A JSON report, a session's folder or file, or `last`.")
@click.option("--output", metavar="FILE", help="Write the analysis here instead of the terminal.")
@click.option("--charts", metavar="FILE", help="Draw it: a PNG, SVG or PDF.")
@click.option("--detailed", metavar="FILE", help="Everything as JSON.")
@click.option("--min-calls", default=1, show_default=True, metavar="N", type=click.IntRange(1),
              help="Leave out operations with fewer calls.")  # fmt: skip
def analyze(
    session: str | None,
    input_: str | None,
    output: str | None,
    charts: str | None,
    detailed: str | None,
    min_calls: int,
) -> None:
    """Score the bottlenecks of a session or JSON report and recommend what to do.

    Each operation scores 0 to 100: 40 for its share of the wall time, 30 for its own time a call, 15 for memory, 15
    for GPU memory.
    """
    if session and input_:
        raise click.UsageError("give the session once: as SESSION or as --input")
    made = build(input_ or session or "last", min_calls)
    if charts is not None:
        from rlprof.report.charts import FORMATS, to_picture  # noqa: PLC0415 - half a second

        suffix = Path(charts).suffix.lower().removeprefix(".")
        if suffix not in FORMATS:
            raise click.UsageError(f"--charts {charts}: a chart is drawn as {', '.join(FORMATS)}, by the name's ending")
        write_file(Path(charts), to_picture(made, suffix))
    if detailed is not None:
        write_file(Path(detailed), msgspec.json.format(msgspec.json.encode(_detailed(made)), indent=1) + b"\n")
    if output is not None:
        write(to_text(made), output)
    else:
        show(partial(render, made))
    for path in (output, charts, detailed):
        if path is not None:
            click.echo(f"wrote {path}", err=True)


def _detailed(report: Report) -> dict[str, Any]:
    facts, findings = report.facts, report.findings
    return {
        "schema_version": report.schema_version,
        "session": facts.session,
        "progress": facts.progress,
        "bottlenecks": findings.bottlenecks,
        "recommendations": findings.recommendations,
        "advice": findings.advice,
        "expectation": findings.expectation,
        "rollout": findings.rollout,
        "categories": facts.breakdown.categories,
        "operations": facts.operations,
    }

"""`rlprof analyze SESSION`: bottlenecks, scores, recommendations. Also `python -m rlprof.analyze`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec

from rlprof.analysis.report import Report
from rlprof.cli import options
from rlprof.cli.help import command, option
from rlprof.cli.output import STDOUT, format_of, show, write, write_file
from rlprof.cli.report import build
from rlprof.report.analyzer import render, to_text


@command(examples=("rlprof analyze", "rlprof analyze report.json --min-calls 10 --charts bottlenecks.png"))
@click.argument("session", required=False)
@option("--input", "input_", metavar="FILE", hidden=True, help="The same as SESSION.")
@options.output
@option("--charts", metavar="FILE", help="Also draw charts: a PNG, SVG or PDF.")
@option("--detailed", metavar="FILE", help="Also write all details as JSON.")
@option("--min-calls", type=click.IntRange(1), default=1, help="Leave out operations with fewer than N calls.")
def analyze(
    session: str | None,
    input_: str | None,
    output: str | None,
    charts: str | None,
    detailed: str | None,
    min_calls: int,
) -> None:
    """Score the bottlenecks of a session and recommend changes.

    SESSION is the folder of a session, its session.db, a JSON report, or `last`, the newest session (the default).

    Each operation scores 0 to 100: 40 for its share of the training time, 30 for its own time per call, 15 for memory,
    15 for GPU memory.
    """
    if session and input_:
        raise click.UsageError("The session is given twice. Use either SESSION or --input.")
    output = _text_file(output)
    made = build(input_ or session or "last", min_calls)
    if charts is not None:
        from rlprof.report.charts import FORMATS, to_picture  # noqa: PLC0415 - half a second

        suffix = Path(charts).suffix.lower().removeprefix(".")
        if suffix not in FORMATS:
            raise click.UsageError(f"--charts {charts}: the name must end with one of {', '.join(FORMATS)}.")
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


def _text_file(output: str | None) -> str | None:
    """The name of a file for text; None for the terminal."""
    if output in (None, STDOUT):
        return None
    try:
        format_of(output, ("text",))
    except click.UsageError as error:
        raise click.UsageError(
            f"--output {output}: `rlprof analyze` writes text, to a name that ends with .txt. For a page, use "
            "`rlprof report --html FILE`."
        ) from error
    return output


def _detailed(report: Report) -> dict[str, Any]:
    facts, findings = report.facts, report.findings
    return {
        "schema_version": report.schema_version,
        "session": facts.session,
        "progress": facts.progress,
        "bottlenecks": findings.bottlenecks,
        "recommendations": findings.recommendations,
        "findings": findings.findings,
        "notes": findings.notes,
        "expectation": findings.expectation,
        "rollout": findings.rollout,
        "categories": facts.breakdown.categories,
        "operations": facts.operations,
    }

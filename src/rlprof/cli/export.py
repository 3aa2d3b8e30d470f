"""`rlprof export SESSION --to FORMAT`: give a session to another tool."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import click

from rlprof.cli.output import explained, writing
from rlprof.session.reader import Session

TABLES = ("operations", "tree", "iterations", "samples")
"""Of rlprof.render.spreadsheet, which a test compares: importing it here would slow `--help`."""

Made = tuple[list[Path], str | None]
"""The files, and what their reader must know."""


def _chrome(session: Session, path: Path | None, _table: str) -> Made:
    from rlprof.export.chrome import write_chrome  # noqa: PLC0415 - each format imports only what it needs

    path = path or session.folder / "export.json"
    with writing(path, session.path) as file:
        remark = write_chrome(session, file)
    return [path], remark


def _speedscope(session: Session, path: Path | None, _table: str) -> Made:
    from rlprof.export.speedscope import write_speedscope  # noqa: PLC0415

    path = path or session.folder / "export.speedscope.json"
    with writing(path, session.path) as file:
        remark = write_speedscope(session, file)
    return [path], remark


def _csv(session: Session, path: Path | None, table: str) -> Made:
    from rlprof.render.spreadsheet import write_csv  # noqa: PLC0415

    path = path or session.folder / f"{table}.csv"
    with writing(path, session.path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        write_csv(session, text, table)
        text.detach()  # flushes; closing is the other's
    return [path], None


def _tensorboard(session: Session, path: Path | None, _table: str) -> Made:
    from rlprof.export.tensorboard import write_tensorboard  # noqa: PLC0415

    path = path or session.folder / "tensorboard"
    with explained(path):
        write_tensorboard(session, path)
    return [path], None


def _otlp(session: Session, path: Path | None, _table: str) -> Made:
    from rlprof.export.otlp import write_otlp_metrics  # noqa: PLC0415
    from rlprof.export.otlp_traces import write_otlp_traces  # noqa: PLC0415
    from rlprof.export.spans import NOT_KEPT  # noqa: PLC0415

    path = path or session.folder / "export.otlp.json"
    with writing(path, session.path) as file:
        write_otlp_metrics(session, file)
    if not any(session.timeline()):
        return [path], NOT_KEPT
    traces = _sibling(path)
    with writing(traces, session.path) as file:
        remark = write_otlp_traces(session, file)
    return [path, traces], remark


FORMATS: dict[str, Callable[[Session, Path | None, str], Made]] = {
    "chrome": _chrome,
    "speedscope": _speedscope,
    "csv": _csv,
    "tensorboard": _tensorboard,
    "otlp-json": _otlp,
}


@click.command()
@click.argument("session", default="last")
@click.option("--to", "to", type=click.Choice(tuple(FORMATS)), required=True, help="What the other tool reads.")
@click.option(
    "--output", "-o", metavar="PATH", help="Instead of a file in the session's folder; NAME.gz is compressed."
)
@click.option("--table", type=click.Choice(TABLES), help="Which one, with --to csv: operations unless told.")
def export(session: str, to: str, output: str | None, table: str | None) -> None:
    """Give a session to another tool.

    \b
    chrome       a trace for Perfetto (ui.perfetto.dev) or chrome://tracing
    speedscope   flame graphs for speedscope.app
    csv          a table for a spreadsheet or pandas
    tensorboard  scalars an iteration, in a folder for tensorboard --logdir
    otlp-json    OpenTelemetry metrics and, with a timeline, traces

    SESSION is a session's folder, its session.db, or `last`, the newest one.
    """
    if table is not None and to != "csv":
        raise click.UsageError("--table goes with --to csv only")
    with Session(session) as opened:
        written, remark = FORMATS[to](opened, Path(output) if output else None, table or TABLES[0])
    for path in written:
        click.echo(f"wrote {path}")
    if remark:
        click.echo(f"note: {remark}", err=True)


def _sibling(path: Path) -> Path:
    """Where the traces go: NAME.traces.json beside NAME.json."""
    suffix = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix
    return path.with_name(f"{path.name.removesuffix(suffix)}.traces{suffix}")

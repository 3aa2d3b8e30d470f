"""`rlprof export SESSION --to FORMAT`: exports a session to another tool."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import click

from rlprof.cli.help import command, option
from rlprof.cli.output import explained, writing
from rlprof.session.reader import Session

TABLES = ("operations", "tree", "iterations", "samples")
"""The tables of rlprof.render.spreadsheet, which would slow `--help` down. A test compares both."""

Made = tuple[list[Path], str | None]
"""The files, and a note for their reader."""


def _chrome(session: Session, path: Path, _table: str) -> Made:
    from rlprof.export.chrome import write_chrome  # noqa: PLC0415 - each format imports only what it needs

    with writing(path, session.path) as file:
        return [path], write_chrome(session, file)


def _speedscope(session: Session, path: Path, _table: str) -> Made:
    from rlprof.export.speedscope import write_speedscope  # noqa: PLC0415

    with writing(path, session.path) as file:
        return [path], write_speedscope(session, file)


def _csv(session: Session, path: Path, table: str) -> Made:
    from rlprof.render.spreadsheet import write_csv  # noqa: PLC0415

    with writing(path, session.path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        write_csv(session, text, table)
        text.detach()  # flushes, and leaves closing to `writing`
    return [path], None


def _tensorboard(session: Session, path: Path, _table: str) -> Made:
    from rlprof.export.tensorboard import write_tensorboard  # noqa: PLC0415

    with explained(path):
        write_tensorboard(session, path)
    return [path], None


def _otlp(session: Session, path: Path, _table: str) -> Made:
    from rlprof.export.otlp import write_otlp_metrics  # noqa: PLC0415
    from rlprof.export.otlp_traces import write_otlp_traces  # noqa: PLC0415
    from rlprof.export.spans import NOT_KEPT  # noqa: PLC0415

    with writing(path, session.path) as file:
        write_otlp_metrics(session, file)
    if not any(session.timeline()):
        return [path], NOT_KEPT
    traces = _sibling(path)
    with writing(traces, session.path) as file:
        note = write_otlp_traces(session, file)
    return [path, traces], note


FORMATS: dict[str, tuple[Callable[[Session, Path, str], Made], str]] = {
    "chrome": (_chrome, "export.json"),
    "speedscope": (_speedscope, "export.speedscope.json"),
    "csv": (_csv, "{table}.csv"),
    "tensorboard": (_tensorboard, "tensorboard"),
    "otlp-json": (_otlp, "export.otlp.json"),
}
"""By name, the function that writes the format, and the default name of its file in the session."""


@command(examples=("rlprof export last --to chrome", "rlprof export last --to csv --table tree -o tree.csv.gz"))
@click.argument("session", default="last")
@option(
    "--to", "to", type=click.Choice(tuple(FORMATS)), metavar="FORMAT",
    default_text="by the ending of FILE", help="Format to write.",
)  # fmt: skip
@option(
    "--output", "-o", metavar="FILE", default_text="a file in the session",
    help="Write to FILE, compressed if it ends with .gz.",
)  # fmt: skip
@option("--table", type=click.Choice(TABLES), default_text=TABLES[0], help="Table to write, with --to csv.")
def export(session: str, to: str | None, output: str | None, table: str | None) -> None:
    """Export a session to another tool.

    SESSION is the folder of a session, its session.db, or `last`, the newest session (the default).

    \b
    FORMAT is one of:
      chrome       a trace for Perfetto (ui.perfetto.dev) or chrome://tracing
      speedscope   flame graphs for speedscope.app
      csv          a table for a spreadsheet or pandas
      tensorboard  scalars per iteration, in a folder for tensorboard --logdir
      otlp-json    OpenTelemetry metrics and, with a timeline, traces
    """
    to = to or _format_of(output)
    if table is not None and to != "csv":
        raise click.UsageError("--table needs --to csv.")
    table = table or TABLES[0]
    write, default = FORMATS[to]
    with Session(session) as opened:
        written, note = write(opened, Path(output) if output else opened.folder / default.format(table=table), table)
    for path in written:
        click.echo(f"wrote {path}")
    if note:
        click.echo(f"note: {note}", err=True)


def _format_of(output: str | None) -> str:
    """The format whose files have such a name. Only chrome's is any other JSON, which says too little."""
    name = (output or "").removesuffix(".gz").lower()
    for format_, ending in (("csv", ".csv"), ("speedscope", ".speedscope.json"), ("otlp-json", ".otlp.json")):
        if name.endswith(ending):
            return format_
    raise click.UsageError(f"Choose a format with --to: {', '.join(FORMATS)}.")


def _sibling(path: Path) -> Path:
    """Path of the traces: NAME.traces.json beside NAME.json."""
    suffix = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix
    return path.with_name(f"{path.name.removesuffix(suffix)}.traces{suffix}")

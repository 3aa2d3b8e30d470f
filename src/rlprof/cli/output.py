"""Where a command's result goes: to the terminal, or to a file that is written whole or not at all."""

from __future__ import annotations

import gzip
import os
import shutil
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import click
from rich.console import Console

from rlprof.errors import RlprofError
from rlprof.render.layout import plain

Formats = Mapping[str, Callable[..., str]]
"""By name of the format, the function that renders it."""

WIDTH = 120
"""Width of text that goes into a pipe, if COLUMNS is not set."""

STDOUT = "-"

_ENDINGS = {"": "text", ".txt": "text", ".log": "text", ".htm": "html", ".md": "markdown"}
"""File endings that differ from the name of their format."""


def format_of(output: str | None, names: Collection[str]) -> str:
    """The format for the ending of a file, without `.gz`. A device or a pipe has no ending and gets text."""
    suffix = Path((output or "").removesuffix(".gz")).suffix.lower()
    found = _ENDINGS.get(suffix, suffix.removeprefix("."))
    if found not in names:
        raise click.UsageError(f"--output {output}: no format ends with {suffix}. Choose one with --format.")
    return found


def destination(
    formats: Collection[str], format_: str | None, output: str | None, html: str | None
) -> tuple[str, str | None]:
    """The format and the file that --format, --output and --html name together. The file `-` is stdout: None."""
    output = None if output == STDOUT else output
    if html is None:
        return format_ or format_of(output, formats), output
    if output is not None or format_ not in (None, "html"):
        raise click.UsageError("--html FILE means --format html --output FILE. Leave out the others.")
    return "html", None if html == STDOUT else html


def deliver(formats: Formats, render: Callable[..., None], chosen: str, output: str | None, *found: Any) -> None:
    """Show `found` as text on the terminal, or write it in the chosen format."""
    if chosen == "text" and output is None:
        show(partial(render, *found))
        return
    write(formats[chosen](*found), output)
    if output is not None:
        click.echo(f"wrote {output}", err=True)


def show(render: Callable[[Console], None]) -> None:
    """Render with the terminal's width and colours, or without colours into a pipe."""
    if sys.stdout is not None and sys.stdout.isatty():
        render(Console(file=sys.stdout, highlight=False))
    else:
        width = shutil.get_terminal_size((WIDTH, 24)).columns
        write(plain(render, width, getattr(sys.stdout, "encoding", None) or "utf-8"), None)


def write(text: str, output: str | None) -> None:
    """Write to a file, or to stdout."""
    if output is None:
        if sys.stdout is None:
            raise RlprofError("stdout is closed. Use --output FILE.")
        if sys.stdout.isatty():
            text = harmless(text)
        try:
            sys.stdout.write(text)
        except UnicodeEncodeError:  # LANG=C: a character that it lacks becomes a question mark
            sys.stdout.write(text.encode(sys.stdout.encoding, "replace").decode(sys.stdout.encoding))
        sys.stdout.flush()
        return
    write_file(Path(output), text.encode("utf-8", "replace"))


def harmless(text: str) -> str:
    """Escape control characters, so that a terminal does not obey them. JSON reads the same escapes."""
    return "".join(
        char if char.isprintable() or char == "\n" else " " if char == "\t" else f"\\u{min(ord(char), 0xFFFF):04x}"
        for char in text
    )


def write_file(path: Path, data: bytes) -> None:
    with writing(path) as file:
        file.write(data)


@contextmanager
def writing(path: Path, source: Path | None = None) -> Iterator[BinaryIO]:
    """A file that is written whole or not at all, compressed if its name ends with .gz.

    A pipe, a device or the target of a link is written to directly. `source`, the file that is read, is kept.
    """
    with explained(path):
        if source is not None and path.exists() and path.samefile(source):
            raise RlprofError(f"--output {path} would overwrite {source}, which is being read. Choose another name.")
        if path.exists() and (path.is_symlink() or not path.is_file()):
            with path.open("wb") as file:
                yield file
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            with gzip.open(partial, "wb", compresslevel=6) if path.suffix == ".gz" else partial.open("wb") as file:
                yield file  # type: ignore[misc]  # a GzipFile has all the methods that are used
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn an error of the operating system into one sentence."""
    try:
        yield
    except BrokenPipeError:
        raise  # the reader of the pipe has ended, which is no error
    except OSError as error:
        raise RlprofError(f"{path} cannot be written: {error.strerror or error}") from error

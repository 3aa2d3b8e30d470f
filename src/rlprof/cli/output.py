"""Where a command's result goes: to the terminal, or to a file that is there whole or not at all."""

from __future__ import annotations

import gzip
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from rich.console import Console

from rlprof.errors import RlprofError
from rlprof.render.layout import plain

WIDTH = 120
"""Of text that goes into a pipe, unless COLUMNS says otherwise."""


def show(render: Callable[[Console], None]) -> None:
    """On a terminal with its own width and colours; in a pipe without."""
    if sys.stdout is not None and sys.stdout.isatty():
        render(Console(file=sys.stdout, highlight=False))
    else:
        width = shutil.get_terminal_size((WIDTH, 24)).columns
        write(plain(render, width, getattr(sys.stdout, "encoding", None) or "utf-8"), None)


def say(text: str) -> None:
    """Beside the result: how far it is, on the standard error, where there is one."""
    if sys.stderr is not None:
        sys.stderr.write(text)
        sys.stderr.flush()


def write(text: str, output: str | None) -> None:
    """To a file, or to the standard output."""
    if output is None:
        if sys.stdout is None:
            raise RlprofError("the standard output is closed; give --output FILE")
        if sys.stdout.isatty():
            text = harmless(text)
        try:
            sys.stdout.write(text)
        except UnicodeEncodeError:  # LANG=C: what it cannot say becomes a question mark
            sys.stdout.write(text.encode(sys.stdout.encoding, "replace").decode(sys.stdout.encoding))
        sys.stdout.flush()
        return
    write_file(Path(output), text.encode("utf-8", "replace"))


def harmless(text: str) -> str:
    """For a terminal: characters that it would obey are written as escapes, which JSON understands too."""
    return "".join(
        char if char.isprintable() or char == "\n" else " " if char == "\t" else f"\\u{min(ord(char), 0xFFFF):04x}"
        for char in text
    )


def write_file(path: Path, data: bytes) -> None:
    with writing(path) as file:
        file.write(data)


@contextmanager
def writing(path: Path, session: Path | None = None) -> Iterator[BinaryIO]:
    """A file that is there whole or not at all, compressed where its name ends with .gz.

    A pipe, a device or what a link points to is written to as it is. The session itself is not overwritten.
    """
    with explained(path):
        if session is not None and path.exists() and path.samefile(session):
            raise RlprofError(f"{path} is the session itself; give --output another name")
        if path.exists() and (path.is_symlink() or not path.is_file()):
            with path.open("wb") as file:
                yield file
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            with gzip.open(partial, "wb", compresslevel=6) if path.suffix == ".gz" else partial.open("wb") as file:
                yield file  # type: ignore[misc]  # a GzipFile does all that is asked of it
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """What the operating system refuses becomes one sentence."""
    try:
        yield
    except BrokenPipeError:
        raise  # the reader of a pipe has had enough
    except OSError as error:
        raise RlprofError(f"{path} cannot be written: {error.strerror or error}") from error

"""The traces that a user names, read with a progress bar."""

from __future__ import annotations

import glob
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from rlprof.errors import RlprofError
from rlprof.session.folder import DATABASE, find_database
from rlprof.trace.columns import Trace
from rlprof.trace.limits import LIMITS, NO_LIMITS, Limits
from rlprof.trace.read import read_trace

_ENDINGS = (".json", ".json.gz")
LARGE = 20_000_000
"""Bytes of a file, from which on a bar is worth its place."""

Result = TypeVar("Result")


def traces_named(given: Iterable[str]) -> list[Path]:
    """Files; the traces of a folder, of a session, or of `last`; patterns that no shell has resolved."""
    return [path for name in given for path in _named(name)]


def _named(name: str) -> list[Path]:
    path = Path(name)
    if name == "last":
        path = find_database(name).parent
    if path.is_dir():
        folder = path / "traces" if (path / DATABASE).exists() else path
        found = sorted(file for file in folder.glob("*") if file.name.endswith(_ENDINGS))
        if not found:
            raise RlprofError(f"{folder} has no traces (*.json or *.json.gz)")
        return found
    if not path.exists() and glob.has_magic(name):
        found = sorted(map(Path, glob.glob(name)))
        if not found:
            raise RlprofError(f"no file is named like {name}")
        return found
    return [path]


no_limits = click.option(
    "--no-limits",
    "limits",
    is_flag=True,
    callback=lambda _context, _option, given: NO_LIMITS if given else LIMITS,
    help=f"Read traces of any size (default: up to {LIMITS.text / 1e9:.0f} GB of text, {LIMITS.events:,} events, and "
    f"{LIMITS.ratio} times the compressed size).",
)


def read_each(
    paths: Iterable[Path], use: Callable[[Trace], Result], limits: Limits = LIMITS, places: bool = False
) -> list[Result]:
    """One after the other, so that no more than one is in memory."""
    results = []
    for path in paths:
        with showing(f"reading {path.name}", path) as progress:
            trace = read_trace(path, progress, places, limits)
        results.append(use(trace))
        del trace
    return results


@contextmanager
def showing(what: str, path: Path) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on the standard error, where that is a terminal and the file large."""
    large = path.is_file() and path.stat().st_size >= LARGE
    if not large or not sys.stderr.isatty():
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=path.stat().st_size)
        yield lambda done, _size: bar.update(task, completed=done)

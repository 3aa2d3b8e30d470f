"""Reads traces with a progress bar."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from rlprof.cli.help import option
from rlprof.trace.columns import Trace
from rlprof.trace.limits import LIMITS, NO_LIMITS, Limits
from rlprof.trace.read import read_trace

LARGE = 20_000_000
"""Bytes of a file that make a progress bar worthwhile."""

Result = TypeVar("Result")

no_limits = option(
    "--no-limits",
    "limits",
    is_flag=True,
    callback=lambda _context, _option, given: NO_LIMITS if given else LIMITS,
    default_text=f"up to {LIMITS.text / 1e9:.0f} GB of text, {LIMITS.events:,} events, and {LIMITS.ratio} times the "
    "compressed size",
    help="Read traces of any size.",
)


def read_each(paths: Iterable[Path], use: Callable[[Trace], Result], limits: Limits) -> list[Result]:
    """Read one trace after the other, so that only one at a time is in memory."""
    results = []
    for path in paths:
        with showing(f"reading {path.name}", path) as progress:
            trace = read_trace(path, progress, limits=limits)
        results.append(use(trace))
        del trace
    return results


@contextmanager
def showing(what: str, path: Path) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on stderr, if that is a terminal and the file is large."""
    large = path.is_file() and path.stat().st_size >= LARGE
    if not large or not sys.stderr.isatty():
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=path.stat().st_size)
        yield lambda done, _size: bar.update(task, completed=done)

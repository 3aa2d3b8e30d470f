"""Output while a training runs: a short table, JSON lines, TensorBoard scalars. All of it on the flushing thread."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

from rlprof.ledger.profiler import Profiler
from rlprof.ledger.snapshot import Snapshot, SpanCost, build_snapshot
from rlprof.render.running import to_summary
from rlprof.render.scalars import Scalars
from rlprof.report.live_iterations import Point, Points, merge_neighbours
from rlprof.session.records import Flush


class Watcher(Protocol):
    """Called after each flush with the batch that was written. Closed when the run has ended."""

    def __call__(self, batch: Flush) -> None: ...
    def close(self) -> None: ...


def watchers(
    profiler: Profiler,
    summary_every: int,
    jsonl: str | os.PathLike[str] | None,
    tensorboard: str | os.PathLike[str] | None,
) -> Iterator[Callable[[], Watcher]]:
    """A function for each requested output that makes it."""
    if summary_every > 0:
        yield lambda: Summary(profiler, summary_every)
    if jsonl is not None:
        yield lambda: JsonLines(Path(jsonl))
    if tensorboard is not None:
        yield lambda: TensorBoard(Path(tensorboard))


@dataclass
class Summary:
    """Prints a short table every so many iterations, with up to a second of delay."""

    profiler: Profiler
    every: int
    _printed: int = 0
    _before: Snapshot | None = None

    def __call__(self, batch: Flush) -> None:
        done = batch.raw["iterations"] // self.every
        if done > self._printed:
            self._printed = done
            now = build_snapshot(batch.raw, SpanCost.over(batch.costs))  # with worker processes
            print_above_bars(to_summary(now, self._before))
            self._before = now

    def close(self) -> None:
        pass


class JsonLines:
    """Appends one object per iteration. docs/watching.md explains its keys."""

    def __init__(self, path: Path) -> None:
        self._points = Points()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab", buffering=0)

    def __call__(self, batch: Flush) -> None:
        lines = b"".join(msgspec.json.encode(point) + b"\n" for point in self._points.of(batch))
        if lines:
            self._file.write(lines)

    def close(self) -> None:
        self._file.close()


MOST_POINTS = 4
"""Most points that TensorBoard gets per flush. If there are more iterations, neighbours are merged."""


class TensorBoard:
    """Writes scalars per iteration, under the same names as `rlprof export --to tensorboard`."""

    def __init__(self, folder: Path) -> None:
        self._points = Points()
        name = f"events.out.tfevents.{int(time.time())}.{platform.node()}.{os.getpid()}.rlprof"
        self._scalars = Scalars(folder / name, time.time())

    def __call__(self, batch: Flush) -> None:
        # A scalar costs the training tens of microseconds, and nobody looks at hundreds of them per second.
        for point in merge_neighbours(list(self._points.of(batch)), MOST_POINTS):
            for tag, value in scalars_of(point).items():
                self._scalars.write(point.time, point.iteration, tag, value)
        self._scalars.flush()

    def close(self) -> None:
        self._scalars.close()


def scalars_of(point: Point) -> dict[str, float]:
    """The figures of an iteration, by the names that TensorBoard shows."""
    seconds = point.seconds
    scalars = {"rlprof_speed/seconds_per_iteration": seconds / point.iterations}
    if point.steps_per_second is not None:
        scalars["rlprof_speed/steps_per_second"] = point.steps_per_second
    if seconds:
        scalars |= {f"rlprof_share_percent/{name}": 100 * spent / seconds for name, spent in point.ledger.items()}
    return scalars


def print_above_bars(text: str) -> None:
    """Print to standard error: above a progress bar, if there is one, instead of into it."""
    tqdm = sys.modules.get("tqdm")
    bars = getattr(getattr(tqdm, "tqdm", None), "_instances", None)
    if tqdm is not None and bars:
        tqdm.tqdm.write(text, file=sys.stderr, end="")
        return
    rich = sys.modules.get("rich")
    console = getattr(rich, "_console", None)
    if console is not None and getattr(console, "_live", None) is not None:
        console.print(text, end="", markup=False, highlight=False)
        return
    sys.stderr.write(text)
    sys.stderr.flush()

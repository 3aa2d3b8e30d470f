"""Measure what `rlprof top` and `rlprof serve` cost a training that they show, and what they cost themselves.

One training runs with about 10^5 spans per second and four workers. Both views are started beside it, and stopped
(SIGSTOP) except for their own periods. Periods with `top`, with `serve` and one page, and two without any view come in
random order in each block, so that the machine's changing speed affects all of them alike. A slowdown is the ratio of
the mean iteration times of two periods of one block; the ratio of the two periods without a view is the noise.

Then both views run undisturbed for a while, `serve` with 20 open pages, and their CPU time and memory are read. The
first frame is the time from the start of the process to the first drawn figures. The giant session has 10^6
iterations, 1,000 lanes and 500 operations.
"""

from __future__ import annotations

import math
import os
import random
import struct
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from typing import Any

import psutil
from _common import Bar, Options, conclude, describe_machine, figure_table, progress
from _giant import make_giant
from _views import Served, Top, giant_frames
from report_speed import interval

from rlprof import open_session

TRAINING = Path(__file__).parent / "trainings" / "watched.py"
VIEWS = ("none", "top", "serve", "none again")
PAGES = 20
BARS = (
    Bar("top_slowdown", "<=", 1.005),
    Bar("serve_slowdown", "<=", 1.005),
    Bar("top_cpu_percent", "<=", 5.0, " %"),
    Bar("top_memory_mb", "<=", 120.0, " MB"),
    Bar("serve_cpu_percent", "<=", 10.0, " %"),
    Bar("first_frame_seconds", "<=", 1.0, " s"),
    Bar("giant_refresh_ms", "<=", 200.0, " ms"),
)


class Training:
    """The recorded training, and when its iterations ended."""

    def __init__(self, folder: Path) -> None:
        self._reading, writing = os.pipe()
        os.set_blocking(self._reading, False)
        command = [sys.executable, "-m", "rlprof", "run", "--quiet", "--dir", str(folder), str(TRAINING), str(writing)]
        self.process = subprocess.Popen(
            command, pass_fds=(writing,), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        os.close(writing)
        self.ends: list[float] = []
        self._rest = b""

    def read(self) -> list[float]:
        """All ends so far, as values of time.monotonic()."""
        while True:
            try:
                found = os.read(self._reading, 1 << 16)
            except BlockingIOError:
                return self.ends
            if not found:
                raise RuntimeError(f"the training ended: {self.process.communicate()[1][-2000:]}")
            whole = self._rest + found
            count = len(whole) // 8
            self.ends += struct.unpack(f"{count}d", whole[: 8 * count])
            self._rest = whole[8 * count :]

    def wait_for(self, iterations: int) -> None:
        while len(self.read()) < iterations:
            time.sleep(0.1)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(60)
        os.close(self._reading)


@contextmanager
def training_in(folder: Path) -> Iterator[tuple[Training, Path]]:
    training = Training(folder)
    try:
        training.wait_for(10)
        (session,) = folder.iterdir()
        yield training, session
    finally:
        training.stop()


def measure_slowdown(training: Training, session: Path, options: Any) -> dict[str, Any]:
    """Each view against no view, in periods of one block."""
    chance = random.Random(options.seed)
    ratios: defaultdict[str, list[float]] = defaultdict(list)
    with Top(session) as top, Served(session.parent, [session.name]) as served:
        views = {"top": top, "serve": served}
        time.sleep(10)  # both have drawn, and have read the session as a whole
        for view in views.values():
            view.pause()
        for block in range(options.blocks):
            taken: dict[str, float] = {}
            for name in chance.sample(VIEWS, len(VIEWS)):
                if name in views:
                    views[name].resume()
                began = time.monotonic()
                time.sleep(options.seconds)
                ended = time.monotonic()
                if name in views:
                    views[name].pause()
                inside = [b - a for a, b in pairwise(training.read()) if a > began and b < ended]
                taken[name] = fmean(inside)
            for name in VIEWS[1:]:
                ratios[name].append(math.log(taken[name] / taken["none"]))
            # Both periods without a view count in each comparison.
            both = (taken["none"] + taken["none again"]) / 2
            for name in views:
                ratios[f"{name} against both"].append(math.log(taken[name] / both))
            if block % 5 == 4:
                progress(f"slowdown: {block + 1} of {options.blocks} blocks")
    results: dict[str, Any] = {}
    for key, name in (
        ("top_slowdown", "top against both"), ("serve_slowdown", "serve against both"), ("noise", "none again"),
    ):  # fmt: skip
        low, middle, high = interval(ratios[name])
        results[key] = math.exp(middle)
        results[f"{key}_interval"] = [math.exp(low), math.exp(high)]
    return results


def measure_views(session: Path, options: Any) -> dict[str, Any]:
    """CPU in percent of one core, and memory, of views that run undisturbed."""
    results: dict[str, Any] = {}
    with Top(session) as top:
        time.sleep(5)
        results["top_cpu_percent"] = _cpu(top.process, options.watch)
        results["top_memory_mb"] = psutil.Process(top.process.pid).memory_info().rss / 1e6
    progress("top measured alone")
    with Served(session.parent, [session.name] * PAGES) as served:
        time.sleep(5)
        results["serve_cpu_percent"] = _cpu(served.process, options.watch)
        results["serve_memory_mb"] = psutil.Process(served.process.pid).memory_info().rss / 1e6
        results["serve_events_per_page"] = min(page.events for page in served.pages)
    progress("serve measured alone")
    return results


def _cpu(process: subprocess.Popen[bytes], seconds: float) -> float:
    """With its children, which may compute for it."""

    def spent() -> float:
        times = psutil.Process(process.pid).cpu_times()
        return times.user + times.system + times.children_user + times.children_system

    began, before = time.monotonic(), spent()
    time.sleep(seconds)
    return 100 * (spent() - before) / (time.monotonic() - began)


def measure_first_frame(session: Path, times: int) -> dict[str, Any]:
    taken = []
    for _ in range(times):
        with Top(session) as top:
            taken.append(top.wait_for_figures(b"steps/s"))
    return {"first_frame_seconds": median(taken), "first_frame_slowest_seconds": max(taken)}


def spans_per_second(session: Path) -> float:
    with open_session(session) as read:
        snapshot = read.snapshot()
        return sum(account.calls for account in snapshot.accounts) / (snapshot.wall_ns / 1e9)


def measure(options: Any) -> dict[str, Any]:
    results: dict[str, Any] = {"machine": describe_machine()}
    with tempfile.TemporaryDirectory() as scratch:
        runs = Path(scratch) / "runs"
        runs.mkdir()
        with training_in(runs) as (training, session):
            results |= measure_first_frame(session, options.times)
            progress("first frames measured")
            results |= measure_views(session, options)
            results |= measure_slowdown(training, session, options)
            processes = [psutil.Process(training.process.pid)]
            processes += processes[0].children(recursive=True)
            results["spans_per_second"] = spans_per_second(session)
            results["blocks"], results["period_seconds"] = options.blocks, options.seconds
            results["training_cores"] = _cores(processes)
        progress("making the giant session")
        frames = giant_frames(make_giant(Path(scratch) / "giant"), options.frames)
    results["giant_refresh_ms"] = median(frames)
    results["giant_refresh_slowest_ms"] = max(frames)
    return results


def _cores(processes: Sequence[psutil.Process]) -> float:
    """Cores that the training uses, over five seconds."""
    for process in processes:
        process.cpu_percent()
    time.sleep(5)
    return sum(process.cpu_percent() for process in processes) / 100


def main() -> None:
    parser = Options(__doc__)
    parser.number("--blocks", 60, "blocks of four periods")
    parser.number("--seconds", 4.0, "length of a period")
    parser.number("--watch", 60.0, "seconds for which CPU time is counted")
    parser.number("--times", 5, "starts of top for the first frame")
    parser.number("--frames", 30, "refreshes of the giant session")
    parser.number("--seed", 1, "seed of the order of the periods")
    options = parser.parse_args()
    results = measure(options)
    conclude(results, BARS, options, figure_table("Cost of live views", results))


if __name__ == "__main__":
    main()

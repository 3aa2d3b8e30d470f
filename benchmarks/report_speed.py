"""Measure how long the report of a long run takes, and how much writing a session slows down a training.

A ledger with a fake clock and the session writer make a session with 10^6 iteration rows. `rlprof report` then reads it
in a new process, as for a user: the times include starting Python.

For the writer, seconds with one flush and seconds without alternate in random order in one training, which records
about 10^5 spans per second. The pieces of work around a flush are compared with the other pieces of the same second.
Windows of the same length in seconds without a flush show the noise.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import NormalDist, fmean, median, stdev
from threading import Thread
from time import perf_counter, sleep
from typing import Any

from _common import Bar, Options, conclude, describe_machine, figure_table, progress

from rlprof import Profiler
from rlprof.ledger.snapshot import SpanCost
from rlprof.recording.recording import Recording
from rlprof.session.info import gather
from rlprof.session.records import Flush
from rlprof.session.writer import SessionWriter

OPERATIONS = 20
BARS = (
    Bar("text_seconds", "<=", 1.5, " s"),
    Bar("html_seconds", "<=", 5.0, " s"),
    Bar("html_bytes", "<=", 8e6),
    Bar("writer_slowdown", "<=", 1.002),
)


def make_session(folder: Path, rows: int) -> Path:
    """Make a session with this many iteration rows, from 20 operations, flushed as a recording flushes it."""
    profiler = Profiler(clock="fake")
    ledger = profiler.ledger
    profiler.span_costs = [SpanCost(60.0, 40.0, 20.0)]
    profiler.enable()
    info = gather("a long run", ledger.now(), profiler.core, {})
    writer = SessionWriter(folder / "session.db", info, most_gains=2 * rows)
    now = 0
    chance = random.Random(1)
    for iteration in range(rows // (OPERATIONS + 1)):
        profiler.iteration()
        for place in range(OPERATIONS):
            with profiler.profile(f"operation_{place}"):
                now += chance.randrange(10_000, 1_000_000)
                ledger.set_time(now, now)
        now += 1_000  # so that the root gets a row, too
        ledger.set_time(now, now)
        profiler.add_steps(1_024)
        if iteration % 300 == 0:
            marks, gains = profiler.drain_iterations()
            writer.write(Flush(now, ledger.raw(), profiler.span_costs, iterations=marks, gains=gains))
    profiler.disable()
    marks, gains = profiler.drain_iterations()
    writer.write(Flush(now, ledger.raw(), profiler.span_costs, iterations=marks, gains=gains))
    writer.end("finished")
    writer.close()
    return folder


def time_report(session: Path, format_: str, output: Path, times: int) -> float:
    command = [sys.executable, "-m", "rlprof", "report", str(session), "--format", format_, "--output", str(output)]
    taken = []
    for _ in range(times):
        began = perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        taken.append(perf_counter() - began)
    return median(taken)


class Training:
    """About 10^5 spans per second, of 20 operations on two levels as in a PPO, in iterations of a tenth of a second."""

    def __init__(self, profiler: Profiler) -> None:
        self._profiler = profiler
        profile = profiler.profile
        self._tree = [(profile(f"outer_{i}"), [profile(f"inner_{i}_{j}") for j in range(4)] * 4) for i in range(4)]

    def block(self, iterations: int) -> list[float]:
        """The start, and when each piece of work was done. Each piece has the same 68 spans."""
        done = [perf_counter()]
        for _ in range(iterations):
            with self._profiler.iteration():
                for _ in range(150):
                    for outer, inners in self._tree:
                        with outer:
                            for inner in inners:
                                with inner:
                                    sum(range(500))
                    self._profiler.add_steps(8)
                    done.append(perf_counter())
        return done


class Flusher(Thread):
    """Flushes once in its own thread, as the thread of a recording does once per second."""

    def __init__(self, recording: Recording, after: float) -> None:
        super().__init__(daemon=True)
        self._recording, self._after = recording, after
        self.start()

    def run(self) -> None:
        sleep(self._after)
        self.began = perf_counter()
        self._recording.flush()
        self.ended = perf_counter()


def excess(done: Sequence[float], began: float, ended: float) -> float:
    """How much longer the pieces around a flush took than the others of their second, as a fraction of that second.

    Only neighbours in time are compared: from one second to the next a machine changes its speed by more than the
    effect of a flush. The window ends a little after the flush, because refilling the caches is part of its cost.
    """
    pieces = [(done[i + 1] - done[i], done[i] < ended + 0.02 and done[i + 1] > began) for i in range(len(done) - 1)]
    usual = fmean(taken for taken, inside in pieces if not inside)
    around = [taken for taken, inside in pieces if inside]
    return (sum(around) - usual * len(around)) / (usual * len(pieces))


def measure_writer(folder: Path, seconds: int) -> dict[str, Any]:
    """The slowdown in seconds with one flush and, for the noise, in windows of the same length without a flush."""
    profiler = Profiler()
    recording = Recording(profiler, "writer", folder, {})
    profiler.enable()
    training = Training(profiler)
    warm = training.block(5)
    iterations = max(1, round(5 / (warm[-1] - warm[0])))
    chance = random.Random(2)
    flushed: list[float] = []
    quiet: list[float] = []
    windows: list[float] = []
    spans = 0
    began = perf_counter()
    for second in range(seconds):
        for flushes in chance.sample((True, False), 2):
            start = 0.2 + 0.5 * chance.random()
            flusher = Flusher(recording, start) if flushes else None
            done = training.block(iterations)
            spans += 68 * (len(done) - 1)
            if flusher is not None:
                flusher.join()
                length = flusher.ended - flusher.began
                windows.append(length)
                flushed.append(excess(done, flusher.began, flusher.ended))
            elif flushed:
                quiet.append(excess(done, done[0] + start, done[0] + start + length))
        if second % 20 == 19:
            progress(f"writer: {second + 1} of {seconds} seconds")
    elapsed = perf_counter() - began
    recording.stop()
    assert recording._flusher is not None
    low, middle, high = interval(flushed)
    noise_low, noise, noise_high = interval(quiet)
    return {
        "writer_slowdown": 1 + middle,
        "writer_slowdown_interval": [1 + low, 1 + high],
        "writer_noise": 1 + noise,
        "writer_noise_interval": [1 + noise_low, 1 + noise_high],
        "writer_seconds": seconds,
        "writer_spans_per_second": spans / elapsed,
        "writer_window_ms": 1e3 * median(windows),
        "writer_cpu_ms_per_flush": recording._flusher.cpu_ns / 1e6 / (seconds + 1),
    }


def interval(figures: Sequence[float]) -> tuple[float, float, float]:
    """The mean of the middle half with its 95 % interval. This leaves out seconds in which the whole machine
    stalled."""
    ordered = sorted(figures)
    cut = len(ordered) // 4
    kept = ordered[cut : len(ordered) - cut]
    middle = fmean(kept)
    # A trimmed mean's error comes from the winsorised spread.
    winsorised = [min(max(figure, kept[0]), kept[-1]) for figure in ordered]
    error = stdev(winsorised) / (len(kept) / len(ordered)) / len(ordered) ** 0.5 if len(ordered) > 1 else 0.0
    half = NormalDist().inv_cdf(0.975) * error
    return middle - half, middle, middle + half


def measure(options: Any) -> dict[str, Any]:
    results: dict[str, Any] = {"machine": describe_machine()}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        results |= measure_writer(folder, options.seconds)
        progress(f"making a session of {options.rows:,} rows")
        session = folder / "long"
        session.mkdir()
        began = perf_counter()
        make_session(session, options.rows)
        results["rows"] = options.rows
        results["make_seconds"] = perf_counter() - began
        results["session_bytes"] = (session / "session.db").stat().st_size
        results["text_seconds"] = time_report(session, "text", folder / "report.txt", options.times)
        results["html_seconds"] = time_report(session, "html", folder / "report.html", options.times)
        results["html_bytes"] = (folder / "report.html").stat().st_size
        results["json_seconds"] = time_report(session, "json", folder / "report.json", options.times)
    return results


def main() -> None:
    parser = Options(__doc__)
    parser.number("--rows", 1_000_000, "iteration rows of the session")
    parser.number("--seconds", 200, "number of seconds with a flush, and as many without")
    parser.number("--times", 3, "runs of each report, of which the median counts")
    options = parser.parse_args()
    results = measure(options)
    conclude(results, BARS, options, figure_table("Report speed", results))


if __name__ == "__main__":
    main()

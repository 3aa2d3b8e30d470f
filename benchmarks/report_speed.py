"""How long a report of a long run takes, and what writing a session costs the training.

A session with 10^6 iteration rows is made through the writer itself, by a ledger with a fake clock. Then
`rlprof report` runs on it in processes of their own, as a user would run it: the times include starting Python.

For the writer, one training takes turns with itself: seconds in which its session is flushed once, and seconds in which
it is not, in random order; about 10^5 spans a second are recorded in both. The ratio is that of the times for the same
work, with a 95 % interval over the pairs; the same of seconds without a flush against each other tells the noise.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from math import exp, log
from pathlib import Path
from statistics import NormalDist, fmean, median, stdev
from threading import Thread
from time import perf_counter
from typing import Any

from _common import Bar, argument_parser, bar_table, describe_machine, judge, progress, write_results
from rich.table import Table

from rlprof import Profiler
from rlprof.ledger.snapshot import SpanCost
from rlprof.recording.recording import Recording
from rlprof.session.info import gather
from rlprof.session.records import Batch
from rlprof.session.writer import SessionWriter

OPERATIONS = 20
BARS = (
    Bar("text_seconds", "<=", 1.5, " s"),
    Bar("html_seconds", "<=", 5.0, " s"),
    Bar("html_bytes", "<=", 8e6),
    Bar("writer_slowdown", "<=", 1.002),
)


def make_session(folder: Path, rows: int) -> Path:
    """So many iteration rows, of a training with 20 operations, flushed as a recording does it."""
    profiler = Profiler(clock="fake")
    ledger = profiler._ledger
    profiler._costs = [SpanCost(60.0, 40.0, 20.0)]
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
        now += 1_000  # so that the root has its row too
        ledger.set_time(now, now)
        profiler.add_steps(1_024)
        if iteration % 300 == 0:
            marks, gains = profiler.drain_iterations()
            writer.write(Batch(now, ledger.raw(), profiler._costs, iterations=marks, gains=gains))
    profiler.disable()
    marks, gains = profiler.drain_iterations()
    writer.write(Batch(now, ledger.raw(), profiler._costs, iterations=marks, gains=gains))
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
    """Spans at about 10^5 a second, of 20 operations two deep, in iterations of about a tenth of a second."""

    def __init__(self, profiler: Profiler) -> None:
        self._profiler = profiler
        profile = profiler.profile
        self._outer = [profile(f"outer_{i}") for i in range(4)]
        self._inner = [profile(f"inner_{i}") for i in range(16)]

    def block(self, iterations: int) -> float:
        """Seconds for so many iterations of 10,200 spans."""
        began = perf_counter()
        for _ in range(iterations):
            with self._profiler.iteration():
                for _ in range(150):
                    for outer in self._outer:
                        with outer:
                            for inner in self._inner:
                                with inner:
                                    sum(range(900))
                    self._profiler.add_steps(8)
        return perf_counter() - began


def measure_writer(folder: Path, pairs: int) -> dict[str, Any]:
    """Seconds with one flush against seconds without."""
    profiler = Profiler()
    recording = Recording(profiler, "writer", folder, {})
    profiler.enable()
    training = Training(profiler)
    training.block(5)
    iterations = max(1, round(5 / training.block(5)))
    flush_thread = _Flusher(recording)
    chance = random.Random(2)
    with_flush: list[float] = []
    without: list[float] = []
    noise: list[float] = []
    spans = profiler.snapshot().accounts
    began_spans, began = sum(account.calls for account in spans), perf_counter()
    for pair in range(pairs):
        order = [True, False, False]
        chance.shuffle(order)
        quiet: list[float] = []
        for flushes in order:
            if flushes:
                flush_thread.flush_soon()
            seconds = training.block(iterations)
            flush_thread.wait()
            (with_flush if flushes else quiet).append(seconds)
        without.append(fmean(quiet))
        noise.append(log(quiet[0] / quiet[1]))
        if pair % 20 == 19:
            progress(f"writer: {pair + 1} of {pairs} pairs")
    elapsed = perf_counter() - began
    done = sum(account.calls for account in profiler.snapshot().accounts) - began_spans
    recording.stop()
    ratios = [log(on / off) for on, off in zip(with_flush, without)]
    low, middle, high = _interval(ratios)
    aa_low, aa, aa_high = _interval(noise)
    return {
        "writer_slowdown": middle,
        "writer_slowdown_interval": [low, high],
        "writer_noise": aa,
        "writer_noise_interval": [aa_low, aa_high],
        "writer_pairs": pairs,
        "writer_spans_per_second": done / elapsed,
        "writer_cpu_ms_per_flush": recording._cpu_ns / 1e6 / max(1, pairs + 1),
    }


class _Flusher:
    """Flushes on a thread of its own when told, as a recording's thread does when a second has passed."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._threads: list[Thread] = []

    def flush_soon(self) -> None:
        thread = Thread(target=self._recording.flush, daemon=True)
        self._threads.append(thread)
        thread.start()

    def wait(self) -> None:
        while self._threads:
            self._threads.pop().join()


def _interval(logs: Sequence[float]) -> tuple[float, float, float]:
    """The mean ratio of the middle half, and an interval: single seconds in which the machine stalled say nothing."""
    kept = sorted(logs)[len(logs) // 4 : len(logs) - len(logs) // 4]
    middle = fmean(kept)
    # The standard error of a mean of the middle half, for noise that is about normal.
    spread = 1.1 * stdev(logs) / len(logs) ** 0.5 if len(logs) > 1 else 0.0
    half = NormalDist().inv_cdf(0.975) * min(spread, 2.2 * stdev(kept) / len(kept) ** 0.5 if len(kept) > 1 else spread)
    return exp(middle - half), exp(middle), exp(middle + half)


def measure(options: Any) -> dict[str, Any]:
    results: dict[str, Any] = {"machine": describe_machine()}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        results |= measure_writer(folder, options.pairs)
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


def table(results: dict[str, Any]) -> Table:
    shown = Table(title="Report speed", title_justify="left")
    shown.add_column("figure")
    shown.add_column("value", justify="right")
    for key, value in results.items():
        if key not in ("machine", "bars"):
            shown.add_row(key, str([round(v, 5) for v in value]) if isinstance(value, list) else f"{value:,.5g}")
    return shown


def main() -> int:
    parser = argument_parser(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="iteration rows of the session (10^6)")
    parser.add_argument("--pairs", type=int, default=100, help="pairs of seconds for the writer's cost (100)")
    parser.add_argument("--times", type=int, default=3, help="runs of each report; their median counts (3)")
    options = parser.parse_args()
    results = measure(options)
    results["bars"] = judge(BARS, results)
    write_results(results, options, [table(results), bar_table(results["bars"])])
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""A session as a Chrome trace for Perfetto and chrome://tracing: spans, iterations, counters.

Times are microseconds since recording began, with nanoseconds as fractions. Only what was measured is drawn: without a
timeline there are no spans, but counters of the ledger for every iteration.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, BinaryIO

import msgspec

from rlprof.analysis.series import Series, series
from rlprof.export.spans import Spans, iteration_name, write_items
from rlprof.ledger.snapshot import Snapshot
from rlprof.session.reader import IterationRow, Session

POINTS = 10_000
"""Most points of the ledger's counters. With more iterations, neighbours are merged."""

_ITERATIONS = 1
"""Thread id of the iterations' track. The lanes' tracks follow."""

Event = dict[str, Any]


def write_chrome(session: Session, file: BinaryIO) -> str | None:
    """Write the trace. Returns a remark for its reader, which is also in the file."""
    spans = Spans(session)
    iterations = session.iterations()
    points = series(session, spans.snapshot, iterations, POINTS)
    categories = {account.operation: account.category for account in spans.snapshot.accounts}
    pid, origin = session.info.pid, _zero(session, spans, iterations)
    tracks: dict[tuple[int, int], int] = {}
    # The names of the tracks come last, when all tracks are known.
    events = chain(
        _spans(spans, pid, origin, tracks),
        (_iteration(iteration, pid, origin) for iteration in iterations),
        _ledger(points, categories, pid, session.info.origin - origin),
        _samples(session, pid, origin),
        _marks(session, pid, origin),
        _names(session, spans.snapshot, tracks, pid),
    )
    file.write(b'{"displayTimeUnit":"ns","traceEvents":[\n')
    write_items(file, events)
    remark = spans.remark()
    file.write(b'\n],"otherData":' + msgspec.json.encode(_other(session, spans, origin, remark)) + b"}\n")
    return remark


def _zero(session: Session, spans: Spans, iterations: Sequence[IterationRow]) -> int:
    """Start of the trace: the start of the recording, or of what was already running then. Perfetto drops times before
    0."""
    earliest = spans.earliest()
    started = [iteration.start for iteration in iterations[:1]] + ([] if earliest is None else [earliest])
    return min([session.info.origin, *started])


def _spans(spans: Spans, pid: int, origin: int, tracks: dict[tuple[int, int], int]) -> Iterator[Event]:
    lanes = len(spans.snapshot.lanes)
    for span in spans:
        track = (span.node.lane, span.track)
        if track not in tracks:
            extra = sum(1 for _, number in tracks if number)
            tracks[track] = _ITERATIONS + 1 + (lanes + extra if span.track else span.node.lane)
        yield {
            "ph": "X",
            "name": span.node.operation,
            "cat": span.node.category,
            "pid": pid,
            "tid": tracks[track],
            "ts": (span.start - origin) / 1000,
            "dur": (span.end - span.start) / 1000,
        }


def _iteration(iteration: IterationRow, pid: int, origin: int) -> Event:
    return {
        "ph": "X",
        "name": iteration_name(iteration),
        "cat": "iteration",
        "pid": pid,
        "tid": _ITERATIONS,
        "ts": (iteration.start - origin) / 1000,
        "dur": (iteration.end - iteration.start) / 1000,
        "args": {
            "wall_ms": iteration.wall_ns / 1e6,
            "steps": iteration.steps,
            "episodes": iteration.episodes,
            "steps_per_second": iteration.steps / (iteration.wall_ns / 1e9) if iteration.wall_ns else None,
        },
    }


def _ledger(points: Series, categories: dict[str, str], pid: int, shift: int) -> Iterator[Event]:
    """One counter per category in ms per iteration, the mean for merged iterations. Over the categories they sum to the
    wall time of an iteration."""
    seen: Counter[str] = Counter()
    for place in range(len(points)):
        count = points.last[place] - points.first[place] + 1
        sums: Counter[str] = Counter()
        for operation, values in points.ledger_ns.items():
            sums[categories.get(operation, operation)] += values[place]
        seen.update(sums.keys())
        at = (points.start_ns[place] + shift) / 1000
        for category in seen:
            yield _counter(f"ledger: {category}", "ms", sums[category] / count / 1e6, at, pid)
    if points.first:
        over = (points.start_ns[-1] + shift + points.wall_ns[-1]) / 1000
        for category in seen:
            yield _counter(f"ledger: {category}", "ms", 0, over, pid)


def _samples(session: Session, pid: int, origin: int) -> Iterator[Event]:
    for sample in session.samples():
        figures = (
            ("CPU", "% of a core", sample.cpu),
            ("CPU of child processes", "% of a core", sample.children_cpu),
            ("CPU of the machine", "%", sample.machine_cpu),
            ("RSS", "MB", _megabytes(sample.rss)),
            ("RSS of child processes", "MB", _megabytes(sample.children_rss) if sample.children else None),
            ("device busy", "%", sample.device_busy),
            ("device memory", "MB", _megabytes(sample.device_memory)),
        )
        for name, unit, value in figures:
            if value is not None:
                yield _counter(name, unit, value, (sample.time - origin) / 1000, pid)


def _megabytes(size: int | None) -> float | None:
    return None if size is None else size / 1e6


def _counter(name: str, unit: str, value: float, ts: float, pid: int) -> Event:
    """Perfetto names a counter by both: `RSS MB`."""
    return {"ph": "C", "name": name, "pid": pid, "ts": ts, "args": {unit: value}}


def _marks(session: Session, pid: int, origin: int) -> Iterator[Event]:
    for mark in session.marks():
        place = {"pid": pid, "tid": _ITERATIONS, "ts": (mark.time - origin) / 1000}
        yield {"ph": "i", "s": "p", "name": mark.kind, **place, "args": {"text": mark.text}}


def _names(session: Session, snapshot: Snapshot, tracks: dict[tuple[int, int], int], pid: int) -> Iterator[Event]:
    def metadata(kind: str, tid: int, **args: Any) -> Event:
        return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": args}

    yield metadata("process_name", _ITERATIONS, name=f"rlprof: {session.info.name}")
    yield metadata("thread_name", _ITERATIONS, name="iterations")
    yield metadata("thread_sort_index", _ITERATIONS, sort_index=0)
    for place, (lane, track) in enumerate(sorted(tracks), 1):
        crossing = f" (crossing spans {track})" if track else ""
        yield metadata("thread_name", tracks[lane, track], name=snapshot.lanes[lane].name + crossing)
        yield metadata("thread_sort_index", tracks[lane, track], sort_index=place)


def _other(session: Session, spans: Spans, origin: int, remark: str | None) -> dict[str, Any]:
    info = session.info
    return {
        "session": info.name,
        "ts_0_unix_ns": str(info.started + origin - info.origin),
        "command": list(info.command),
        "host": info.host,
        "rlprof": info.packages.get("rlprof", ""),
        "wall_ns": str(spans.snapshot.wall_ns),
        "spans_kept": spans.kept,
        "spans_lost": spans.lost,
        "spans_still_open": spans.snapshot.open_spans,
        **({"remark": remark} if remark else {}),
    }

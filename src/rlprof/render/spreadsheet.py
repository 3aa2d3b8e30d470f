"""A session as tables: one row per operation, place of the call tree, iteration or system sample."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, TextIO

from rlprof.analysis.breakdown import RLPROF, UNATTRIBUTED, Breakdown, breakdown
from rlprof.analysis.operations import Operation, operations
from rlprof.analysis.report import Report
from rlprof.analysis.series import series
from rlprof.analysis.training import training_of
from rlprof.render.names import literal
from rlprof.session.reader import Session
from rlprof.session.records import Sample

Rows = Iterator[Sequence[Any]]

OUTSIDE = "outside"
"""Category of what is not training."""

_FORMULA = re.compile(r"((?:^|;)\s*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])")
"""The position before these characters, or their full-width forms, at the start of a cell. In some locales a semicolon
starts a cell, even inside quoted text."""

_OPERATION: dict[str, Callable[[Operation], Any]] = {
    **{name: attrgetter(name) for name in ("operation", "category")},
    "share_percent": lambda row: round(row.share, 4),
    **{name: attrgetter(name) for name in ("ledger_ns", "calls", "busy_ns", "self_ns", "overlapped_ns", "waited_ns")},
    "cpu_ns": attrgetter("cpu_ns"),
    "mean_ns": lambda row: _rounded(row.mean_ns),
    "p50_ns": lambda row: _rounded(row.p50_ns),
    "p95_ns": lambda row: _rounded(row.p95_ns),
    "p99_ns": lambda row: _rounded(row.p99_ns),
    **{name: attrgetter(name) for name in ("min_ns", "max_ns")},
    **{f"{name}_bytes": attrgetter(name) for name in ("memory_peak", "memory_rise")},
    "device_ns": lambda row: row.device_ns if row.device_calls else None,
    **{f"{name}_bytes": attrgetter(name) for name in ("device_peak", "device_rise")},
}

_SAMPLE: dict[str, Callable[[Sample], Any]] = {
    "seconds": lambda row: row.weight / 1e9,
    **{f"{name}_percent_of_a_core": attrgetter(name) for name in ("cpu", "children_cpu")},
    "machine_cpu_percent": attrgetter("machine_cpu"),
    **{f"{name}_bytes": attrgetter(name) for name in ("rss", "children_rss")},
    "children": attrgetter("children"),
    "machine_available_bytes": attrgetter("machine_available"),
    "device_busy_percent": attrgetter("device_busy"),
    "device_memory_bytes": attrgetter("device_memory"),
}


def to_csv(report: Report) -> str:
    text = io.StringIO(newline="")
    _write(text, _operations(report.facts.operations, report.facts.breakdown))
    return text.getvalue()


def write_csv(session: Session, file: TextIO, table: str = "operations") -> None:
    """Write one of TABLES. The file must not translate line ends: open it with newline=''."""
    _write(file, TABLES[table](session))


def _write(file: TextIO, rows: Iterable[Sequence[Any]]) -> None:
    csv.writer(file, lineterminator="\n").writerows(map(_harmless, row) for row in rows)


def _harmless(value: Any) -> Any:
    """Names are chosen by programs. None may become a formula, and none may contain control characters."""
    return _FORMULA.sub(r"\1'", literal(value)) if isinstance(value, str) else value


def _rounded(ns: float | None) -> float | None:
    return None if ns is None else round(ns, 1)


def _operations_of(session: Session) -> Rows:
    training = training_of(session)
    return _operations(operations(training.snapshot), breakdown(training))


def _operations(found: Sequence[Operation], whole: Breakdown) -> Rows:
    """Including `unattributed`, `rlprof` and what lies outside of the training: the column ledger_ns sums to the wall
    time."""
    yield list(_OPERATION)
    for operation in found:
        yield [value(operation) for value in _OPERATION.values()]
    for row in whole.rows:
        if row.category in (UNATTRIBUTED, RLPROF):
            share = round(100 * row.ledger_ns / whole.training_ns, 4) if whole.training_ns else 0.0
            known = {"share_percent": share, "ledger_ns": row.ledger_ns}
            yield [row.operation, row.category, *(known.get(name) for name in list(_OPERATION)[2:])]
    for part in whole.outside:
        yield [part.name, OUTSIDE, *(part.ns if name == "ledger_ns" else None for name in list(_OPERATION)[2:])]


def _tree(session: Session) -> Rows:
    """The call tree in reading order. The column ledger_ns sums to the training time."""
    yield (
        "depth", "operation", "parent", "category", "calls", "ledger_ns", "subtree_ledger_ns", "share_percent",
        "wall_ns", "self_ns", "cpu_ns", "overlapped_ns", "mean_ns", "p50_ns", "p95_ns", "p99_ns",
    )  # fmt: skip
    above: list[str] = []
    for row in breakdown(training_of(session)).rows:
        del above[row.depth :]
        yield (
            row.depth, row.operation, above[-1] if above else None, row.category, row.calls, row.ledger_ns,
            row.subtree_ledger_ns, row.share, row.wall_ns, row.self_ns, row.cpu_ns, row.overlapped_ns,
            *map(_rounded, (row.mean_ns, row.p50_ns, row.p95_ns, row.p99_ns)),
        )  # fmt: skip
        above.append(row.operation)


def _iterations(session: Session) -> Rows:
    """One column per operation; they sum to wall_ns. In long runs, old iterations are merged: first and last differ."""
    iterations = session.iterations()
    # As many points as iterations, so that no iterations are merged that the session stores separately.
    points = series(session, session.snapshot(), iterations, points=iterations[-1].last + 1 if iterations else 1)
    yield (
        "first", "last", "start_s", "wall_ns", "steps", "episodes", "steps_per_second",
        *(f"{name} ledger_ns" for name in points.ledger_ns),
    )  # fmt: skip
    for place in range(len(points)):
        wall, steps = points.wall_ns[place], points.steps[place]
        yield (
            points.first[place], points.last[place], points.start_ns[place] / 1e9, wall, steps, points.episodes[place],
            round(steps / wall * 1e9, 3) if wall else None,
            *(values[place] for values in points.ledger_ns.values()),
        )  # fmt: skip


def _samples(session: Session) -> Rows:
    info = session.info
    yield ("time_s", "unix_time_s", *_SAMPLE)
    for sample in session.samples():
        since = sample.time - info.origin
        yield (since / 1e9, (info.started + since) / 1e9, *(value(sample) for value in _SAMPLE.values()))


TABLES: dict[str, Callable[[Session], Rows]] = {
    "operations": _operations_of,
    "tree": _tree,
    "iterations": _iterations,
    "samples": _samples,
}

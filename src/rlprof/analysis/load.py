"""Load and validate the facts of a session or of a JSON report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import msgspec

from rlprof.analysis.breakdown import RLPROF, UNATTRIBUTED
from rlprof.analysis.facts import Facts, gather_facts
from rlprof.analysis.report import SCHEMA_VERSION
from rlprof.errors import UnreadableError
from rlprof.ledger.histogram import BUCKETS_PER_OCTAVE, OCTAVES
from rlprof.session.folder import find_database
from rlprof.session.reader import Session

LARGEST = 2**62
"""Largest valid figure. Larger ones are no measurement, and their sums would not fit 64 bits."""

MOST_BYTES = 1_000_000_000
"""Largest JSON report. One with 50,000 operations has about 100 MB."""

_MAY_BE_NEGATIVE = ("start_ns", "time_ns", "ledger_ns", "origin")
"""A point of a series may be negative after a correction, and clocks start anywhere."""


class _Header(msgspec.Struct):
    schema_version: int


class _Document(msgspec.Struct):
    facts: Facts


def load_facts(given: str | Path) -> Facts:
    """The facts of a session (folder, file or `last`) or of a JSON report."""
    path = Path(given)
    try:
        is_file = path.is_file()
    except OSError as error:  # a name too long, or a folder that may not be entered
        raise UnreadableError(f"{str(path)[:200]} cannot be read: {error.strerror or error}") from error
    if is_file and _looks_like_json(path):
        return _read_json(path)
    with Session(find_database(given)) as session:
        return gather_facts(session)


def _looks_like_json(path: Path) -> bool:
    """False for an SQLite file, and for one that looks like neither: this decides which error is shown."""
    try:
        with path.open("rb") as file:
            head = file.read(512)
    except OSError as error:
        raise UnreadableError(f"{path} cannot be read: {error.strerror or error}") from error
    if head.startswith(b"SQLite format 3\0"):
        return False
    return path.suffix == ".json" or head.lstrip()[:1] in (b"{", b"[")


def _read_json(path: Path) -> Facts:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise UnreadableError(f"{path} is larger than {MOST_BYTES / 1e9:.1f} GB, so it is not an rlprof report")
        data = path.read_bytes()
        version = msgspec.json.decode(data, type=_Header).schema_version
        if version != SCHEMA_VERSION:
            raise UnreadableError(
                f"{path} is a report of version {version}, but this rlprof reads version {SCHEMA_VERSION}; "
                f"{'update rlprof' if version > SCHEMA_VERSION else 'make it again from the session'}"
            )
        facts = msgspec.json.decode(data, type=_Document).facts
    except OSError as error:
        raise UnreadableError(f"{path} cannot be read: {error.strerror or error}") from error
    except msgspec.ValidationError as error:
        raise UnreadableError(f"{path} is JSON, but not what `rlprof report --format json` writes: {error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnreadableError(f"{path} is not JSON: {error}") from error
    except RecursionError as error:
        raise UnreadableError(f"{path} is not an rlprof report: it is nested too deeply") from error
    wrong = next(_wrong(facts), None)
    if wrong is not None:
        raise UnreadableError(f"{path} is damaged: {wrong}")
    return facts


def _wrong(facts: Facts) -> Iterator[str]:
    """Descriptions of everything that cannot be true of a measurement."""
    yield from _wrong_numbers(facts, "facts")
    rows = facts.breakdown.rows
    if [row.category for row in rows[-2:]] != [UNATTRIBUTED, RLPROF]:
        yield "facts.breakdown.rows do not end with unattributed and rlprof"
    depth = -1
    for place, row in enumerate(rows):
        if not 0 <= row.depth <= depth + 1:
            yield f"facts.breakdown.rows[{place}].depth is {row.depth} below a row of depth {depth}"
        depth = row.depth
    for name in ("series", "resources.samples"):
        if len(set(_lengths(facts.series if name == "series" else facts.resources.samples))) > 1:
            yield f"facts.{name} has columns of different lengths"
    before = 0
    for first, last in zip(facts.series.first, facts.series.last):
        if last < first:
            yield f"facts.series has a point that ends before it begins, at iteration {first}"
        if first <= before:
            yield f"facts.series is out of order at iteration {first}"
        before = last
    for operation in facts.operations:
        if not all(0 <= bucket < BUCKETS_PER_OCTAVE * OCTAVES for bucket in operation.histogram):
            yield f"the histogram of {operation.operation!r} has a bucket that does not exist"
    try:
        facts.check()
    except AssertionError as error:
        yield str(error)


def _lengths(columns: Any) -> Iterator[int]:
    for field in fields(columns):
        value = getattr(columns, field.name)
        yield from map(len, value.values()) if isinstance(value, dict) else [len(value)]


def _wrong_numbers(value: Any, place: str) -> Iterator[str]:
    """Numbers that are not finite, too large, or negative where that is impossible."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        lowest = -LARGEST if any(name in place for name in _MAY_BE_NEGATIVE) else 0
        if not isfinite(value) or not lowest <= value <= LARGEST:
            yield f"{place} is {value}"
    elif is_dataclass(value):
        for field in fields(value):
            yield from _wrong_numbers(getattr(value, field.name), f"{place}.{field.name}")
    elif isinstance(value, dict):
        for key, item in value.items():
            if "settings" not in place:  # they are the user's, and only shown
                yield from _wrong_numbers(item, f"{place}[{key!r}]")
    elif isinstance(value, (tuple, list)):
        for index, item in enumerate(value):
            yield from _wrong_numbers(item, f"{place}[{index}]")

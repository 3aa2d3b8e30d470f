"""Reads a file of torch.profiler, gzipped or not, into columns. Events that cannot be used are counted."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from rlprof.analysis.figures import many
from rlprof.errors import UnreadableError
from rlprof.ledger.native import say_missing
from rlprof.trace.columns import ABSENT, Sparse, Texts, Trace
from rlprof.trace.kinds import ANNOTATIONS, BY_CATEGORY, Kind
from rlprof.trace.limits import LIMITS, Limits
from rlprof.trace.pieces import Pieces

try:
    from rlprof.trace._scan import Scanner
except ImportError:  # no compiler where it was installed
    from rlprof.trace.twin import Scanner  # type: ignore[assignment]

NUMBERS = (
    "correlation", "stream", "device", "bytes", "Bytes", "Device Id", "Device Type", "Total Allocated",
    "Total Reserved",
)  # fmt: skip
TEXTS = ("Input Dims", "Input dims")

Progress = Callable[[int, int], None]
"""Called with the bytes of the file that were read, and with its size."""


def read_trace(
    path: str | Path, progress: Progress | None = None, places: bool = False, limits: Limits = LIMITS
) -> Trace:
    """Raises UnreadableError for a file that is beyond the limits or has nothing usable. The events before a damaged
    place are used.

    places: keep the place of each event in the text, which copying events needs.
    """
    path = Path(path)
    try:
        return _read(path, progress, places, limits)
    except MemoryError as error:
        raise UnreadableError(
            f"{path} needs more memory than there is. Cut a small trace out of it on a larger machine: rlprof trace cut"
        ) from error


def _read(path: Path, progress: Progress | None, places: bool, limits: Limits) -> Trace:
    pieces = Pieces(path, limits)
    say_missing("rlprof.trace._scan", "the C reader of traces", "Traces are read in Python, which takes far longer.")
    scanner = Scanner(NUMBERS, TEXTS, places)
    with closing(iter(pieces)) as stream:
        for piece in stream:
            going_on = scanner.feed(piece)
            limits.check_content(path, scanner)
            if progress is not None:
                progress(pieces.read, pieces.size)
            if not going_on:
                break
    columns, args = scanner.columns()
    limits.check_content(path, scanner)
    if pieces.unpacked == 0 and not pieces.cut:
        raise UnreadableError(f"{path} is empty. The profiler that wrote it did not finish.")
    broken = _broken(scanner, pieces)
    if not scanner.has_events:
        raise UnreadableError(f"{path} is not a trace: {broken or 'it has no traceEvents'}.")
    if scanner.rows == 0:
        raise UnreadableError(
            f"{path} has no events{f': {broken}' if broken else ''}. "
            "A torch.profiler schedule that never reaches its active steps leaves such a file."
        )
    problems = [f"{broken}; the {scanner.rows:,} events before that are used"] if broken else []

    def column(name: str, kind: type[np.generic] = np.int32) -> NDArray[Any]:
        return np.frombuffer(columns[name], kind)

    trace = Trace(
        path=str(path),
        header=_header(bytes(columns["header"])),
        kind=np.zeros(scanner.rows, np.uint8),
        name=column("name"),
        process=column("process"),
        thread=column("thread"),
        start=column("start", np.int64),
        duration=column("duration", np.int64),
        texts=Texts(memoryview(columns["texts"]), column("text_ends", np.uint64)),
        args={
            key: Sparse(np.frombuffer(rows, np.int32), np.frombuffer(values, np.int64))
            for key, (rows, values) in args.items()
        },
        problems=(),
        unpacked=pieces.unpacked,
        phase=column("phase", np.uint8),
        at=column("at", np.int64),
        size=column("size", np.int64),
    )
    _set_kinds(trace, column("category"))
    _leave_out(trace, problems)
    if scanner.odd:
        problems.append(f"{many(scanner.odd, 'entry')} other than JSON objects left out")
    return replace(trace, problems=tuple(problems))


def _broken(scanner: Any, pieces: Pieces) -> str:
    if scanner.broken_at >= 0:
        return f"its text is not JSON at byte {scanner.broken_at:,}"
    if pieces.cut:
        return f"{pieces.cut} after {pieces.unpacked:,} bytes of text"
    if not scanner.ended:
        return f"its text ends in the middle, at byte {pieces.unpacked:,}"
    return ""


def _set_kinds(trace: Trace, category: NDArray[np.int32]) -> None:
    texts, kind = trace.texts, trace.kind
    # One more entry at the end, for index -1: no category.
    table = np.full(len(texts) + 1, Kind.OTHER, np.uint8)
    for index in _used(category, texts):
        table[index] = BY_CATEGORY.get(texts.name(int(index)).lower(), Kind.OTHER)
    kind[:] = table[category]
    complete = trace.phase == ord("X")
    kind[~complete & (kind != Kind.MEMORY)] = Kind.UNUSED
    kind[complete & (kind == Kind.MEMORY)] = Kind.OTHER
    operators = trace.rows(Kind.OPERATOR)
    names = trace.name[operators]
    is_mark = np.zeros(len(texts) + 1, bool)
    is_mark[[index for index in _used(names, texts) if texts.name(int(index)).startswith(ANNOTATIONS)]] = True
    kind[operators[is_mark[names]]] = Kind.ANNOTATION


def _used(column: NDArray[np.int32], texts: Texts) -> NDArray[np.int64]:
    """The texts that a column refers to. np.unique would sort millions of rows, and import half of numpy first."""
    seen = np.zeros(len(texts) + 1, bool)
    seen[column] = True
    return np.flatnonzero(seen[:-1])


def _leave_out(trace: Trace, problems: list[str]) -> None:
    complete = trace.phase == ord("X")
    timeless = complete & ((trace.start == ABSENT) | (trace.duration == ABSENT))
    negative = complete & ~timeless & (trace.duration < 0)
    for wrong, defect in ((timeless, "without a timestamp"), (negative, "with a negative duration")):
        if count := int(np.count_nonzero(wrong)):
            trace.kind[wrong] = Kind.UNUSED
            problems.append(f"{many(count, 'event')} {defect} left out")
    trace.kind[(trace.kind == Kind.MEMORY) & (trace.start == ABSENT)] = Kind.UNUSED


def _header(members: bytes) -> dict[str, Any]:
    try:
        found: dict[str, Any] = msgspec.json.decode(b"{" + members + b"}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}  # nothing in it is needed to use the events
    return found

"""Reads a file of torch.profiler, gzipped or not, into columns. Events that cannot be used are counted."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

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
    "correlation", "External id", "external id", "stream", "device", "bytes", "Bytes", "Addr", "Device Id",
    "Device Type", "Total Allocated", "Total Reserved", "Python id", "Python parent id", "Sequence number",
    "Fwd thread id", "queued",
)  # fmt: skip
TEXTS = ("Input Dims", "Input dims", "Call stack", "name", "labels", "cuda_sync_kind")

Progress = Callable[[int, int], None]
"""Called with the bytes of the file that were read, and with its size."""

_NO_TIME = "{} without a timestamp left out"
_NEGATIVE = "{} with a negative duration left out"
_ODD = "{} left out because they are not JSON objects"


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
    texts = Texts(memoryview(columns["texts"]), np.frombuffer(columns["text_ends"], np.uint64))
    start = np.frombuffer(columns["start"], np.int64)
    duration = np.frombuffer(columns["duration"], np.int64)
    name = np.frombuffer(columns["name"], np.int32)
    phase = np.frombuffer(columns["phase"], np.uint8)
    process = np.frombuffer(columns["process"], np.int32)
    pairs = {
        key: Sparse(np.frombuffer(rows, np.int32), np.frombuffer(values, np.int64))
        for key, (rows, values) in args.items()
    }
    kind = _kinds(np.frombuffer(columns["category"], np.int32), phase, name, texts)
    _leave_out(kind, phase, start, duration, problems)
    if scanner.odd:
        problems.append(_ODD.format(_count(scanner.odd, "event")))
    return Trace(
        path=str(path),
        header=_header(bytes(columns["header"])),
        kind=kind,
        name=name,
        process=process,
        thread=np.frombuffer(columns["thread"], np.int32),
        start=start,
        duration=duration,
        texts=texts,
        args=pairs,
        problems=tuple(problems),
        unpacked=pieces.unpacked,
        phase=phase,
        at=np.frombuffer(columns["at"], np.int64),
        size=np.frombuffer(columns["size"], np.int64),
        labels=_labels(phase, name, process, texts, pairs),
    )


def _broken(scanner: Any, pieces: Pieces) -> str:
    if scanner.broken_at >= 0:
        return f"its text is not JSON at byte {scanner.broken_at:,}"
    if pieces.cut:
        return f"{pieces.cut} after {pieces.unpacked:,} bytes of text"
    if not scanner.ended:
        return f"its text ends in the middle, at byte {pieces.unpacked:,}"
    return ""


def _kinds(
    category: NDArray[np.int32], phase: NDArray[np.uint8], name: NDArray[np.int32], texts: Texts
) -> NDArray[np.uint8]:
    # One more entry at the end, for index -1: no category.
    table = np.full(len(texts) + 1, Kind.OTHER, np.uint8)
    for index in _used(category, texts):
        table[index] = BY_CATEGORY.get(texts.name(int(index)).lower(), Kind.OTHER)
    kind: NDArray[np.uint8] = table[category]
    kind[(phase != ord("X")) & (kind != Kind.MEMORY)] = Kind.UNUSED
    kind[(phase == ord("X")) & (kind == Kind.MEMORY)] = Kind.OTHER
    operators = np.flatnonzero(kind == Kind.OPERATOR)
    marks = [index for index in _used(name[operators], texts) if texts.name(int(index)).startswith(ANNOTATIONS)]
    if marks:
        is_mark = np.zeros(len(texts) + 1, bool)
        is_mark[marks] = True
        kind[operators[is_mark[name[operators]]]] = Kind.ANNOTATION
    return kind


def _used(column: NDArray[np.int32], texts: Texts) -> NDArray[np.int64]:
    """The texts that a column refers to. np.unique would sort millions of rows, and import half of numpy first."""
    seen = np.zeros(len(texts) + 1, bool)
    seen[column] = True
    return np.flatnonzero(seen[:-1])


def _leave_out(
    kind: NDArray[np.uint8],
    phase: NDArray[np.uint8],
    start: NDArray[np.int64],
    duration: NDArray[np.int64],
    problems: list[str],
) -> None:
    complete = phase == ord("X")
    timeless = complete & ((start == ABSENT) | (duration == ABSENT))
    negative = complete & ~timeless & (duration < 0)
    for wrong, words in ((timeless, _NO_TIME), (negative, _NEGATIVE)):
        count = int(np.count_nonzero(wrong))
        if count:
            kind[wrong] = Kind.UNUSED
            problems.append(words.format(_count(count, "event")))
    kind[(kind == Kind.MEMORY) & (start == ABSENT)] = Kind.UNUSED


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _header(members: bytes) -> dict[str, Any]:
    try:
        found: dict[str, Any] = msgspec.json.decode(b"{" + members + b"}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}  # nothing in it is needed to use the events
    return found


def _labels(
    phase: NDArray[np.uint8],
    name: NDArray[np.int32],
    process: NDArray[np.int32],
    texts: Texts,
    pairs: dict[str, Sparse],
) -> dict[int, dict[str, str]]:
    labels: dict[int, dict[str, str]] = {}
    for row in np.flatnonzero(phase == ord("M")):
        what = {"process_name": "name", "process_labels": "labels"}.get(texts.name(int(name[row])))
        if what is not None:
            value = int(pairs[what].at(np.array([row]))[0])
            labels.setdefault(int(process[row]), {})[what] = texts.name(value)
    return labels

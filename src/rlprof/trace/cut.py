"""Writes some events of a large trace, byte for byte, to a small trace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from rlprof.trace.columns import Rows, Trace
from rlprof.trace.pieces import Pieces
from rlprof.trace.read import Progress


def write_cut(trace: Trace, rows: Rows, note: Any, file: BinaryIO, progress: Progress | None = None) -> None:
    """Write these rows, the header of the trace and a note about the cut. The trace must have been read with
    places=True."""
    header = msgspec.json.encode({**trace.header, "rlprof_cut": note})
    file.write(header[:-1] + b',\n"traceEvents": [')
    separator = b"\n"
    for event in _events(trace, rows, progress):
        file.write(separator + event)
        separator = b",\n"
    file.write(b"\n]}\n")


def _events(trace: Trace, rows: Rows, progress: Progress | None) -> Iterator[bytes]:
    """One pass through the text that keeps only one piece and one event in memory."""
    wanted = iter(zip(trace.at[rows].tolist(), trace.size[rows].tolist()))
    pieces = Pieces(Path(trace.path))
    held, offset = b"", 0
    place = next(wanted, None)
    with closing(iter(pieces)) as stream:
        for piece in stream:
            held += piece
            while place is not None and place[0] + place[1] <= offset + len(held):
                start = place[0] - offset
                yield held[start : start + place[1]]
                place = next(wanted, None)
            if place is None:
                return
            done = min(len(held), max(0, place[0] - offset))
            held, offset = held[done:], offset + done
            if progress is not None:
                progress(pieces.read, pieces.size)

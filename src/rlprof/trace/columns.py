"""A trace in columns: one row per event, and pairs of row and value for members that only some events have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from rlprof.trace.kinds import Kind

ABSENT = -(2**63)
LONGEST_NAME = 10_000
"""Characters of a name that are kept. Searching names of megabytes would take too long."""

Rows = NDArray[np.int64]
"""Indices of events."""


@dataclass(frozen=True)
class Sparse:
    """A member of the events' `args`: the rows that have it, in order, and its values in them."""

    rows: NDArray[np.int32]
    values: NDArray[np.int64]

    def at(self, rows: Rows, absent: int = -1) -> NDArray[np.int64]:
        """Its values at these rows."""
        found = np.full(len(rows), absent, np.int64)
        if len(self.rows):
            places = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
            hit = self.rows[places] == rows
            found[hit] = self.values[places[hit]]
        return found


class Texts:
    """The texts whose indices the columns hold. Each is decoded when it is first used."""

    def __init__(self, data: memoryview, ends: NDArray[np.uint64]) -> None:
        self._data, self._ends = data, ends
        self._decoded: dict[int, Any] = {}

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, index: int) -> Any:
        """The decoded value; None for an index below zero."""
        if index < 0:
            return None
        if index not in self._decoded:
            start = int(self._ends[index - 1]) if index else 0
            self._decoded[index] = _decode(bytes(self._data[start : int(self._ends[index])]))
        return self._decoded[index]

    def name(self, index: int) -> str:
        found = self[index]
        name = found if isinstance(found, str) else "" if found is None else str(found)
        half = LONGEST_NAME // 2
        return name if len(name) <= LONGEST_NAME else f"{name[:half]}\u2026{name[-half:]}"


def _decode(text: bytes) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # invalid text, such as half a character
        return text.decode("utf-8", "replace").strip('"')


@dataclass(frozen=True)
class Trace:
    """The events of one file, in file order. Times are in ns."""

    path: str
    header: Mapping[str, Any]
    """Members of the file beside its events."""
    kind: NDArray[np.uint8]
    name: NDArray[np.int32]
    process: NDArray[np.int32]
    thread: NDArray[np.int32]
    start: NDArray[np.int64]
    duration: NDArray[np.int64]
    texts: Texts
    """Names, processes and threads, and the text members of `args`."""
    args: Mapping[str, Sparse]
    problems: tuple[str, ...]
    """Problems of the file as sentences, with the number of events that could not be used."""
    unpacked: int
    """Bytes of JSON after unpacking."""
    phase: NDArray[np.uint8]
    """The phase as in the file: `X` is an event with a duration."""
    at: NDArray[np.int64]
    """Where each event begins in the text; empty unless read with places=True. Then arrows between events are rows,
    too."""
    size: NDArray[np.int64]
    """Bytes of each event."""

    def rows(self, *kinds: Kind) -> Rows:
        """The events of these kinds, in the order of the file."""
        found = self.kind == kinds[0]
        for kind in kinds[1:]:
            found |= self.kind == kind
        return np.flatnonzero(found)

    @cached_property
    def end(self) -> NDArray[np.int64]:
        return self.start + self.duration

    def arg(self, *keys: str) -> Sparse:
        """A member of `args` under the first of these names that the trace uses."""
        for key in keys:
            if len(self.args[key].rows):
                return self.args[key]
        return self.args[keys[0]]

    def names(self, rows: Rows) -> list[str]:
        return [self.texts.name(int(index)) for index in self.name[rows]]

    def matching(self, rows: Rows, pattern: re.Pattern[str]) -> Rows:
        """Those of the rows whose name matches."""
        names = [index for index in np.unique(self.name[rows]) if pattern.search(self.texts.name(int(index)))]
        found: Rows = rows[np.isin(self.name[rows], names)]
        return found

    def lanes(self, rows: Rows) -> NDArray[np.int64]:
        """The process and thread of each row, as one number."""
        return self.process[rows].astype(np.int64) << 32 | self.thread[rows]

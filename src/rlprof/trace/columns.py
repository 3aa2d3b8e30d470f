"""A trace in columns: one row an event, and pairs of row and value for what only some events have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from rlprof.trace.kinds import Kind

ABSENT = -(2**63)
LONGEST_NAME = 10_000
"""Characters: what looks for words in names would take long with those of megabytes."""

Rows = NDArray[np.int64]
"""Indices of events."""


@dataclass(frozen=True)
class Sparse:
    """A member of the events' `args`: the rows that have it, in order, and its values there."""

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
    """What the columns hold the indices of, decoded when asked for."""

    def __init__(self, data: memoryview, ends: NDArray[np.uint64]) -> None:
        self._data, self._ends = data, ends
        self._decoded: dict[int, Any] = {}

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, index: int) -> Any:
        """The value of that JSON; of an index below zero, None."""
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
    except (
        msgspec.DecodeError,
        UnicodeDecodeError,
        RecursionError,
    ):  # a control character, half a multi-byte one: as it is
        return text.decode("utf-8", "replace").strip('"')


@dataclass(frozen=True)
class Trace:
    """The events of one file, in its order. Times are ns."""

    path: str
    header: Mapping[str, Any]
    """What stands beside the events."""
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
    """What could not be used, counted: sentences for people."""
    unpacked: int
    """Bytes of JSON."""
    phase: NDArray[np.uint8]
    """As the file has it: `X` is an event with a duration."""
    at: NDArray[np.int64]
    """Where each event begins in the text; empty unless asked for. With it, arrows between events are rows, too."""
    size: NDArray[np.int64]
    """Bytes of each event."""
    labels: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    """Of a process (an index of `texts`): its `name` and `labels`."""

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

"""Copies between host and devices, and their speed."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from rlprof.trace.analysis.devices import Device
from rlprof.trace.columns import Trace
from rlprof.trace.kinds import Kind

_SIDES = {"H": "host", "D": "device", "P": "device", "A": "device", "U": "unified"}
_SHORT = re.compile(r"\b([HDPAU])to([HDPAU])\b")
_LONG = re.compile(r"(Host|Device)To(Host|Device)")

FILL = "fill"
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Copies:
    """All copies of one kind. Times in ns."""

    name: str
    """Name in the trace, which distinguishes pageable from pinned memory."""
    direction: str
    """`host to device`, ...; `fill` if a device only sets its own memory."""
    calls: int
    total: int
    bytes: int | None
    """Bytes of all copies; None if the trace lacks the size of some."""
    small: int
    """Number of copies of up to 4 KB."""

    @property
    def rate(self) -> float | None:
        """Bytes per second while copies run."""
        return None if self.bytes is None or not self.total else self.bytes / (self.total / 1e9)


SMALL = 4096


def copies_of(trace: Trace, devices: list[Device]) -> list[Copies]:
    """Copies by kind, longest first."""
    rows = np.concatenate([np.zeros(0, np.int64), *(device.rows for device in devices)])
    rows = rows[np.isin(trace.kind[rows], (Kind.COPY, Kind.FILL))]
    found = []
    for index in np.unique(trace.name[rows]):
        mine = rows[trace.name[rows] == index]
        size = trace.arg("bytes", "Bytes").at(mine)
        name = trace.texts.name(int(index))
        found.append(
            Copies(
                name=name,
                direction=FILL if trace.kind[mine[0]] == Kind.FILL else direction_of(name),
                calls=len(mine),
                total=int(trace.duration[mine].sum()),
                bytes=int(size.sum()) if (size >= 0).all() else None,
                small=int(np.count_nonzero((size >= 0) & (size <= SMALL))),
            )
        )
    return sorted(found, key=lambda copies: (-copies.total, copies.name))


def direction_of(name: str) -> str:
    """`Memcpy HtoD (Pageable -> Device)` of CUDA, `CopyHostToDevice` of ROCm."""
    if short := _SHORT.search(name):
        return f"{_SIDES[short[1]]} to {_SIDES[short[2]]}"
    if long := _LONG.search(name):
        return f"{long[1].lower()} to {long[2].lower()}"
    return UNKNOWN

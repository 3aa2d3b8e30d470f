"""Operators and kernels by time, and which operator launched which kernel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlprof.trace.analysis.devices import Device
from rlprof.trace.analysis.launches import launches_of
from rlprof.trace.analysis.nesting import Nesting, nest
from rlprof.trace.columns import Rows, Trace
from rlprof.trace.kinds import Kind


@dataclass(frozen=True)
class Total:
    """Time of all calls with one name and, if shapes were recorded, one shape of inputs. In ns."""

    name: str
    shapes: str
    calls: int
    total: int
    """Time of its own: without the operators that it called."""
    longest: int
    device: int
    """Time of the kernels and copies that an operator launched itself; for a kernel, the same as `total`."""


@dataclass(frozen=True)
class Calls:
    """Which operators call and launch what, in a whole trace."""

    trace: Trace
    devices: list[Device]

    @cached_property
    def nesting(self) -> Nesting:
        return nest(self.trace, self.trace.rows(Kind.OPERATOR, Kind.RUNTIME))

    @cached_property
    def launched(self) -> tuple[Rows, Rows, NDArray[np.int64]]:
        """Rows of devices, the calls that launched them, and the operators that made these calls, as positions in
        `nesting`; -1 if unknown."""
        rows = np.concatenate([np.zeros(0, np.int64), *(device.rows for device in self.devices)])
        calls = launches_of(self.trace, rows)
        place = np.full(len(self.trace.kind), -1, np.int64)
        place[self.nesting.rows] = np.arange(len(self.nesting.rows))
        operator = np.where(calls >= 0, place[np.maximum(calls, 0)], -1)
        return rows, calls, np.where(operator >= 0, self.nesting.parent[np.maximum(operator, 0)], -1)

    def operators(self) -> list[Total]:
        """Operators by self time."""
        found, trace = self.nesting, self.trace
        rows, _, operator = self.launched
        known = operator >= 0
        device = np.bincount(operator[known], trace.duration[rows[known]], len(found.rows)).astype(np.int64)
        mine = trace.kind[found.rows] == Kind.OPERATOR
        return totals(trace, found.rows[mine], found.self_time[mine], device[mine])

    def kernels(self) -> list[Total]:
        """Kernels by time, with the shapes of their operators' inputs."""
        rows, _, operator = self.launched
        kernels = self.trace.kind[rows] == Kind.KERNEL
        rows, operator = rows[kernels], operator[kernels]
        shaped = np.where(operator >= 0, self.nesting.rows[np.maximum(operator, 0)], -1)
        duration = self.trace.duration[rows]
        return totals(self.trace, rows, duration, duration, shaped)


def totals(
    trace: Trace,
    rows: Rows,
    time: NDArray[np.int64],
    device: NDArray[np.int64],
    shaped: Rows | None = None,
) -> list[Total]:
    """Totals of rows by name and shape, longest first. `shaped` are the rows with the shapes (default: `rows`)."""
    shapes = trace.arg("Input Dims", "Input dims").at(rows if shaped is None else shaped)
    groups, group = np.unique(np.stack([trace.name[rows].astype(np.int64), shapes]), axis=1, return_inverse=True)
    count = groups.shape[1]
    calls = np.bincount(group, minlength=count)
    summed = np.bincount(group, time, count).astype(np.int64)
    on_device = np.bincount(group, device, count).astype(np.int64)
    longest = np.zeros(count, np.int64)
    np.maximum.at(longest, group, time)
    found = [
        Total(
            name=trace.texts.name(int(groups[0, i])),
            shapes=shape_text(trace.texts[int(groups[1, i])]),
            calls=int(calls[i]),
            total=int(summed[i]),
            longest=int(longest[i]),
            device=int(on_device[i]),
        )
        for i in range(count)
    ]
    return sorted(found, key=lambda total: (-total.total, total.name, total.shapes))


def shape_text(shapes: Any) -> str:
    """Shapes as people write them: `64x3x7x7, 64`. Arguments that are not tensors have none."""
    if not isinstance(shapes, list):
        return ""
    sizes = [_size(shape) for shape in shapes]
    return ", ".join(size for size in sizes if size)


def _size(shape: Any) -> str:
    if not isinstance(shape, list):
        return ""
    if shape and isinstance(shape[0], list):
        return "[" + ", ".join(filter(None, map(_size, shape))) + "]"
    return "x".join(map(str, shape))

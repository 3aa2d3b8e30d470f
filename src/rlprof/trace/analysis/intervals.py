"""Sets of instants: sorted intervals that do not touch, and how much of them lies inside others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.int64]


@dataclass(frozen=True)
class Intervals:
    """Half-open intervals: sorted, disjoint, none of them empty."""

    start: Times
    end: Times

    @classmethod
    def of(cls, start: Times, end: Times) -> Intervals:
        """The union of these intervals, which may overlap."""
        real = end > start
        start, end = start[real], end[real]
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
        if not len(start):
            return cls(start, end)
        reach = np.maximum.accumulate(end)
        begins = np.empty(len(start), bool)
        begins[0] = True
        np.greater(start[1:], reach[:-1], out=begins[1:])
        last = np.append(np.flatnonzero(begins)[1:] - 1, len(start) - 1)
        return cls(start[begins], reach[last])

    @classmethod
    def one(cls, start: int, end: int) -> Intervals:
        return cls.of(np.array([start], np.int64), np.array([end], np.int64))

    @property
    def total(self) -> int:
        return int((self.end - self.start).sum())

    @cached_property
    def _lengths(self) -> Times:
        return np.concatenate([[0], np.cumsum(self.end - self.start)])

    def before(self, times: Times) -> Times:
        """Length of this set before each of these instants."""
        index = np.searchsorted(self.start, times, "right")
        if not len(self.start):
            return np.zeros(len(times), np.int64)
        over = np.maximum(0, self.end[np.maximum(index - 1, 0)] - times)
        return self._lengths[index] - np.where(index > 0, over, 0)

    def within(self, start: Times, end: Times) -> Times:
        """Length of this set inside each of these intervals, which may overlap."""
        found: Times = np.maximum(0, self.before(end) - self.before(start))
        return found

    def __and__(self, other: Intervals) -> Intervals:
        return ~(~self | ~other)

    def __or__(self, other: Intervals) -> Intervals:
        return Intervals.of(np.concatenate([self.start, other.start]), np.concatenate([self.end, other.end]))

    def __sub__(self, other: Intervals) -> Intervals:
        return self & ~other

    def __invert__(self) -> Intervals:
        """The complement."""
        low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
        start, end = np.concatenate([[low], self.end]), np.concatenate([self.start, [high]])
        real = end > start
        return Intervals(start[real], end[real])


def joined(parts: Iterable[Intervals]) -> Intervals:
    """The union of these sets."""
    parts = list(parts)
    empty = np.zeros(0, np.int64)
    return Intervals.of(
        np.concatenate([empty, *(part.start for part in parts)]), np.concatenate([empty, *(part.end for part in parts)])
    )

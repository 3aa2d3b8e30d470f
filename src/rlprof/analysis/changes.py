"""Which operations take longer, or shorter, than they did some minutes ago? Robust against single slow iterations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rlprof.ledger.catalogue import BESIDE_TRAINING
from rlprof.session.reader import IterationRow, Session

LONGEST_AGO = 600e9
SHORTEST = 60e9
"""Least length of the training. ns, like all times here."""
WIDEST = 30e9
"""Length of each of the two windows that are compared, if they hold enough iterations."""
CHUNKS = 8
FEWEST = 5
"""Chunks of one window. If nothing changed, all of one window exceed all of the other in 2 of 252 cases."""
LEAST_RATIO = 1.2
LEAST_SHARE = 3.0
"""Percent of the training time, in the window where it is larger."""


@dataclass(frozen=True, slots=True)
class Change:
    """An operation whose calls take longer or shorter than they did earlier in the run."""

    operation: str
    ratio: float
    """Time per call now, divided by the time per call then: 1.4 for 40 % longer. Waiting does not count."""
    before_ns: float
    now_ns: float
    ago_s: float
    """Time from the middle of the older window to the middle of the newer one."""
    share: float
    """Percent of the time of the iterations now that is the operation's."""


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Some neighbouring iterations: times and calls by operation."""

    wall_ns: int
    worked: Counter[str]
    calls: Counter[str]
    ledger: Counter[str]


def changes(session: Session, iterations: Sequence[IterationRow], operation_of: Mapping[int, str]) -> list[Change]:
    """The changes of the time per call, the largest first.

    operation_of: by node. Nodes without an operation are missing.
    """
    rows = iterations[1:]  # the first one warms up
    if len(rows) < 2 * FEWEST or rows[-1].end - rows[0].start < SHORTEST:
        return []
    length = rows[-1].end - rows[0].start
    ago = min(LONGEST_AGO, length / 2)
    width = min(WIDEST, ago / 8)
    newest = _newest(rows, width)
    older = rows[: len(rows) - len(newest)]
    before = _newest([row for row in older if row.end <= rows[-1].end - ago], width)
    if min(len(newest), len(before)) < FEWEST:
        return []
    then, now = ([_chunk(session, group, operation_of) for group in _groups(side)] for side in (before, newest))
    ago_s = (_middle(newest) - _middle(before)) / 1e9
    names = {name for chunk in now for name in chunk.calls} - BESIDE_TRAINING
    found = (_change(name, then, now, ago_s) for name in names)
    return sorted((change for change in found if change is not None), key=lambda change: -_size(change))


def _newest(rows: Sequence[IterationRow], width: float) -> Sequence[IterationRow]:
    """The last iterations within this time, or the last few if they take longer."""
    inside = sum(row.end > rows[-1].end - width for row in rows) if rows else 0
    return rows[len(rows) - min(len(rows), max(inside, CHUNKS)) :]


def _middle(rows: Sequence[IterationRow]) -> float:
    return (rows[0].start + rows[-1].end) / 2


def _groups(rows: Sequence[IterationRow]) -> list[Sequence[IterationRow]]:
    count = min(CHUNKS, len(rows))
    edges = [len(rows) * place // count for place in range(count + 1)]
    return [rows[start:end] for start, end in pairwise(edges)]


def _chunk(session: Session, rows: Sequence[IterationRow], operation_of: Mapping[int, str]) -> _Chunk:
    chunk = _Chunk(sum(row.wall_ns for row in rows), Counter(), Counter(), Counter())
    for gain in session.gains(rows[0], rows[-1]):
        name = operation_of.get(gain.node)
        if name is not None:
            chunk.worked[name] += max(0, gain.self_ns - gain.waited_ns)
            chunk.calls[name] += gain.calls
            chunk.ledger[name] += gain.ledger_ns
    return chunk


def _change(name: str, then: Sequence[_Chunk], now: Sequence[_Chunk], ago_s: float) -> Change | None:
    """None if the two windows overlap, or if the difference is too small to matter."""
    if not all(chunk.calls[name] for chunk in (*then, *now)):
        return None
    old, new = ([chunk.worked[name] / chunk.calls[name] for chunk in side] for side in (then, now))
    before, after = (
        sum(chunk.worked[name] for chunk in side) / sum(chunk.calls[name] for chunk in side) for side in (then, now)
    )
    shares = [_share(name, side) for side in (then, now)]
    apart = min(new) > max(old) or max(new) < min(old)
    if not apart or min(before, after) <= 0 or max(shares) < LEAST_SHARE:
        return None
    change = Change(name, after / before, before, after, ago_s, shares[1])
    return change if _size(change) >= LEAST_RATIO else None


def _share(name: str, chunks: Sequence[_Chunk]) -> float:
    wall = sum(chunk.wall_ns for chunk in chunks)
    return 100 * sum(chunk.ledger[name] for chunk in chunks) / wall if wall else 0.0


def _size(change: Change) -> float:
    return max(change.ratio, 1 / change.ratio)

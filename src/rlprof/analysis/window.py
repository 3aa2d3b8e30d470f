"""What did the training do in some iterations, or since an earlier reading? Own times by path, and how busy lanes were.

The figures follow the rules of the breakdown: rlprof's own cost is taken out, and what lies beside the training is left
out. Unlike the breakdown, this needs no more than the gains of the nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlprof.analysis.breakdown import RLPROF
from rlprof.analysis.series import calls_inside, own_share
from rlprof.ledger.catalogue import BESIDE_TRAINING, EVALUATION
from rlprof.ledger.snapshot import SpanCost
from rlprof.session.reader import Gain

Path = tuple[str, ...]
"""Operations from the top of the call tree to one place. Empty for the time outside of all operations."""


@dataclass(frozen=True, slots=True)
class NodeAt:
    """Where a node of a call tree is."""

    parent: int | None
    lane: int
    path: Path


@dataclass(frozen=True, slots=True)
class Window:
    """A part of the training. Times are ns; the own times sum to `training_ns`."""

    training_ns: int = 0
    evaluation_ns: int = 0
    """Part of it."""
    own: Mapping[Path, int] | None = None
    """Training time by path, without what is below. `unattributed` is the empty path, `rlprof` a path of its own."""
    subtree: Mapping[Path, int] | None = None
    """The same with what is below."""
    calls: Mapping[Path, int] | None = None
    busy_ns: Mapping[int, int] | None = None
    """By lane: time at work inside of operations."""

    def share(self, path: Path, with_below: bool = True) -> float | None:
        """Percent of the training time of the window. None if nothing is known."""
        times = self.subtree if with_below else self.own
        if times is None or self.training_ns <= 0:
            return None
        # Between two readings, time may have moved from one place to another.
        return min(100.0, max(0.0, 100 * times.get(path, 0) / self.training_ns))


def window(gains: Sequence[Gain], places: Mapping[int, NodeAt], cost: SpanCost, with_beside: bool = False) -> Window:
    """with_beside: count what lies beside the training, too."""
    inside = calls_inside(gains, {id: at.parent for id, at in places.items()})
    own: Counter[Path] = Counter()
    calls: Counter[Path] = Counter()
    busy: Counter[int] = Counter()
    for gain in gains:
        at = places.get(gain.node)
        if at is None:
            continue
        share = own_share(gain, inside[gain.node], cost)
        if at.path:
            busy[at.lane] += round(max(0, gain.self_ns - gain.waited_ns) * (1 - share))
        if with_beside or BESIDE_TRAINING.isdisjoint(at.path):
            rlprof = int(max(0, gain.ledger_ns) * share)
            own[at.path] += gain.ledger_ns - rlprof
            own[RLPROF,] += rlprof
            calls[at.path] += gain.calls
    subtree: Counter[Path] = Counter()
    for path, ns in own.items():
        for end in range(min(1, len(path)), len(path) + 1):
            subtree[path[:end]] += ns
    evaluation = sum(ns for path, ns in own.items() if EVALUATION in path)
    return Window(sum(own.values()), evaluation, own, subtree, calls, busy)

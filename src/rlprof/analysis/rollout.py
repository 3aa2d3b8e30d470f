"""What does one rollout consist of? The part of the call tree that collects experience, per rollout."""

from __future__ import annotations

from dataclasses import dataclass

from rlprof.analysis.breakdown import RLPROF, UNATTRIBUTED, Breakdown, Row

COLLECTING = ("environment", "rendering", "policy", "teacher", "transfer", "storage")

LEAST_OF_ROLLOUT = 0.3
"""Fraction of the rollout time that the bottleneck takes at least."""
LEAST_OF_TRAINING = 0.2
"""Fraction of the training time. In a shorter rollout, nothing is a bottleneck of the training."""


@dataclass(frozen=True, slots=True)
class Step:
    """One line of the tree."""

    operation: str
    depth: int
    ns: float
    """Time per rollout, including what it called."""
    bottleneck: bool
    """True for the line with the largest time of its own, if it dominates the rollout and the rollout matters."""


@dataclass(frozen=True, slots=True)
class Rollout:
    rollouts: int
    total_ns: float
    """Per rollout."""
    steps: tuple[Step, ...]


def rollout(breakdown: Breakdown) -> Rollout | None:
    """None without iterations or without an environment.

    If one operation contains the whole collection, its calls are the rollouts. Otherwise the iterations are, and the
    collecting operations at the top of the tree belong to them.
    """
    rows = [row for row in breakdown.rows if row.category not in (UNATTRIBUTED, RLPROF)]
    if not any(row.category == "environment" for row in rows):
        return None
    holder = _holder(rows, breakdown.iterations)
    if holder is not None:
        inside, count, base = _subtree(rows, rows.index(holder))[1:], holder.calls, holder.depth + 1
        total = holder.subtree_ledger_ns
    else:
        # At least about once per iteration: creating the environments beforehand is not part of a rollout.
        often = [place for place, row in enumerate(rows) if not row.depth and row.calls >= 0.5 * breakdown.iterations]
        subtrees = [_subtree(rows, place) for place in often]
        inside = [row for subtree in subtrees if _collects(subtree) for row in subtree]
        count, base = breakdown.iterations, 0
        total = sum(row.subtree_ledger_ns for row in inside if row.depth == 0)
    if not count or not inside:
        return None
    worst = _dominating(inside, total) if total >= LEAST_OF_TRAINING * breakdown.training_ns else None
    steps = [Step(row.operation, row.depth - base, row.subtree_ledger_ns / count, row is worst) for row in inside]
    return Rollout(count, total / count, tuple(steps))


def _dominating(rows: list[Row], total: int) -> Row | None:
    worst = max(rows, key=lambda row: row.ledger_ns)
    return worst if len(rows) > 1 and worst.ledger_ns >= LEAST_OF_ROLLOUT * total else None


def _holder(rows: list[Row], iterations: int) -> Row | None:
    """The innermost operation called about once per iteration that contains nearly all environment time."""
    if not iterations:
        return None
    everything = sum(row.ledger_ns for row in rows if row.category == "environment")
    found = None
    for place, row in enumerate(rows):
        subtree = _subtree(rows, place)
        held = sum(inner.ledger_ns for inner in subtree if inner.category == "environment")
        once = 0.5 <= row.calls / iterations <= 2
        if len(subtree) > 1 and once and row.category != "environment" and held >= 0.9 * everything > 0:
            found = row
    return found


def _collects(subtree: list[Row]) -> bool:
    return subtree[0].category in COLLECTING or any(row.category == "environment" for row in subtree)


def _subtree(rows: list[Row], place: int) -> list[Row]:
    end = place + 1
    while end < len(rows) and rows[end].depth > rows[place].depth:
        end += 1
    return rows[place:end]

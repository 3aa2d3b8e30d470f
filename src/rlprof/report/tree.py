"""The rows of the call tree that matter, under the names that a report shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rlprof.analysis.breakdown import RLPROF, UNATTRIBUTED, Row
from rlprof.analysis.code import Line
from rlprof.analysis.facts import Facts
from rlprof.ledger.catalogue import PHASES

OWN_CODE = "your code outside of operations"
FRAMEWORKS = {"stable_baselines3": "stable-baselines3", "sb3_contrib": "sb3-contrib", "torchrl": "TorchRL"}
"""Packages whose phases contain their own code, which a line of the user's runs: `model.learn(...)`."""
LEAST_SHARE = 2.0
"""Percent of the training time. Smaller rows are in `--full`."""
NEARLY_ALL = 0.95
"""Least fraction of a row that is its own time, so that the rows below it are not worth a line."""
ENOUGH_NS = 200_000_000
"""Four samples. A line that was seen less often may be there by chance."""
_ELSEWHERE = {"process": " (in worker processes)", "thread": " (in other threads)", "task": " (in other tasks)"}


@dataclass(frozen=True, slots=True)
class TreeRow:
    name: str
    operation: str
    depth: int
    share: float
    """Percent of the training time, with the rows below."""
    ns: float
    is_own: bool
    """True if the row is only its own time: it has no rows below."""
    line: Line | None = None
    """The line that its own time mostly comes from. None if that is not known."""


def largest_parts(facts: Facts) -> list[TreeRow]:
    """The rows without rows below, the largest first."""
    return sorted((row for row in tree_rows(facts) if row.is_own), key=lambda row: -row.ns)


def tree_rows(facts: Facts, most: int = 1_000) -> list[TreeRow]:
    """The largest rows of the call tree, in its order. The own time of a row with others below it is a row, too: the
    user's code that is in none of the named operations."""
    whole = facts.breakdown
    rows: list[TreeRow] = []
    inside: int | None = None
    path: list[str] = []
    for place, row in enumerate(whole.rows):
        path[row.depth :] = [row.operation]
        if inside is not None and row.depth > inside:
            continue
        inside = None
        if row.share < LEAST_SHARE or (row.category == RLPROF and row.share < 5 * LEAST_SHARE):
            continue
        holds = place + 1 < len(whole.rows) and whole.rows[place + 1].depth > row.depth
        name = OWN_CODE if row.category == UNATTRIBUTED else row.operation
        name += _ELSEWHERE.get(row.elsewhere, "") if row.depth == 0 else ""
        share = 100 * row.ledger_ns / whole.training_ns
        if holds and row.operation not in PHASES and share >= NEARLY_ALL * row.share:
            holds, inside = False, row.depth
        rows.append(
            TreeRow(
                name, row.operation, row.depth, row.share, row.subtree_ledger_ns, not holds, _hottest(facts, row, path)
            )
        )
        if holds and share >= LEAST_SHARE:
            name = own_code(facts, row.operation) if row.operation in PHASES else f"{row.operation} itself"
            rows.append(
                TreeRow(name, row.operation, row.depth + 1, share, row.ledger_ns, True, _hottest(facts, row, path))
            )
    while len(rows) > most:
        smallest = min(range(len(rows)), key=lambda place: (rows[place].share, -rows[place].depth))
        del rows[smallest]
    return _by_size(rows)


def _by_size(rows: list[TreeRow]) -> list[TreeRow]:
    """The same tree with the largest row of each level first. A tree may be deeper than Python recurses."""
    below: dict[int, list[int]] = {-1: []}
    path: list[int] = []
    for place, row in enumerate(rows):
        while path and rows[path[-1]].depth >= row.depth:
            path.pop()
        below[path[-1] if path else -1].append(place)
        below[place] = []
        path.append(place)
    ordered: list[TreeRow] = []
    pending = [-1]
    while pending:
        place = pending.pop()
        if place >= 0:
            ordered.append(rows[place])
        pending += sorted(below[place], key=lambda one: -rows[one].share)[::-1]
    return ordered


def _hottest(facts: Facts, row: Row, path: Sequence[str]) -> Line | None:
    """The line that the own time of a row mostly comes from."""
    line = next(iter(facts.code.at(path, on_driver=not row.elsewhere)), None)
    return line if line is not None and line.ns >= ENOUGH_NS else None


def own_code(facts: Facts, phase: str) -> str:
    """Name of the own time of a phase: code between the operations that it contains, of the user or of a framework."""
    shares: Counter[str] = Counter()
    for line in facts.code.within(phase):
        shares[_framework(line.below[0]) if line.below else ""] += line.share  # type: ignore[assignment]
    whose = max(shares, key=shares.__getitem__, default="")
    return f"{whose}'s code in {phase}" if whose else f"your code in {phase}"


def function_of_framework(line: Line) -> str | None:
    """`PPO.train()` for a line of the user's that only starts a framework's training."""
    inside = [name for name in line.below if _framework(name)]
    if not inside or inside[0] != line.below[0]:
        return None
    return f"{inside[-1].partition(':')[2].partition('.<locals>')[0]}()"


def _framework(name: str) -> str:
    """The framework that a `module:function` belongs to; empty if it is none."""
    return FRAMEWORKS.get(name.partition(".")[0], "")

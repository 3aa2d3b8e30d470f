"""The training time by named components, each a set of operations that a workload defines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rlprof.analysis.breakdown import RLPROF, UNATTRIBUTED, Breakdown
from rlprof.analysis.training import Outside
from rlprof.ledger.catalogue import STARTUP
from rlprof.ledger.sharing import apportion

EVERYTHING_ELSE = "Everything else"
"""Operations that belong to no component."""

_OWN = {STARTUP: "Start-up", UNATTRIBUTED: "Unattributed", RLPROF: "rlprof itself"}


@dataclass(frozen=True, slots=True)
class ComponentLine:
    """One component or part of a component. Parts follow their component, one level deeper."""

    title: str
    depth: int
    ledger_ns: int
    """Including its parts."""
    share: float
    """Share of the training time in percent with one decimal. Lines of depth 0 sum to 100.0."""


@dataclass(frozen=True, slots=True)
class Components:
    training_ns: int
    lines: tuple[ComponentLine, ...]
    """They sum to the training time."""
    outside: tuple[Outside, ...]
    """Start-up and other parts of the run that are not training, with their titles. They have no share."""

    def check(self) -> None:
        """Raise AssertionError if the components do not add up."""
        total = sum(line.ledger_ns for line in self.lines if line.depth == 0)
        assert total == self.training_ns, f"components sum to {total} ns, training time is {self.training_ns} ns"


def components(breakdown: Breakdown, named: Mapping[str, Any]) -> Components:
    """Assign every instant of the training to one component: that of a row's operation, or else of its parent row."""
    titles = _titles(named)
    lines = {path: 0 for path, _ in _paths(named)}
    inherited: list[tuple[str, ...]] = []
    for row in breakdown.rows:
        del inherited[row.depth :]
        parent = inherited[-1] if inherited else (_OWN.get(row.operation, EVERYTHING_ELSE),)
        found = titles.get(row.operation, parent)
        inherited.append(found)
        for end in range(1, len(found) + 1):
            lines[found[:end]] = lines.get(found[:end], 0) + row.ledger_ns
    shares = _shares(lines, breakdown.training_ns)
    shown = [(path, ns) for path, ns in lines.items() if ns or path[0] in named]
    made = (ComponentLine(path[-1], len(path) - 1, ns, shares[path]) for path, ns in shown)
    outside = (Outside(_title(part.name), part.ns) for part in breakdown.outside)
    return Components(breakdown.training_ns, tuple(made), tuple(outside))


def _title(name: str) -> str:
    """`Start-up`, `After training`."""
    return _OWN.get(name) or name.replace("_", " ").capitalize()


def component_of(named: Mapping[str, Any]) -> Callable[[str], str]:
    """Finds the component of a path of operations (`rollout/env_step`), or its last operation if none are named."""
    titles = _titles(named)

    def find(path: str) -> str:
        operations = path.split("/") if path else []
        if not named:
            return operations[-1] if operations else UNATTRIBUTED
        for operation in reversed(operations):
            if operation in titles:
                return ": ".join(titles[operation])
        return _OWN.get(operations[0], EVERYTHING_ELSE) if operations else _OWN[UNATTRIBUTED]

    return find


def _paths(named: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """The titles of each component, outermost first, with its own operations."""
    for title, inside in named.items():
        path = (*above, title)
        yield path, [] if isinstance(inside, Mapping) else inside.split()
        if isinstance(inside, Mapping):
            yield from _paths(inside, path)


def _titles(named: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    return {operation: path for path, operations in _paths(named) for operation in operations}


def _shares(lines: Mapping[tuple[str, ...], int], whole_ns: int) -> dict[tuple[str, ...], float]:
    """Apportioned at the top level, so that the printed shares sum to 100.0; a part never exceeds its component."""
    shares: dict[tuple[str, ...], float] = {}
    tops = [path for path in lines if len(path) == 1]
    for path, tenths in zip(tops, apportion(1000, [lines[path] for path in tops])):
        shares[path] = tenths / 10
        for inner, ns in lines.items():
            if len(inner) > 1 and inner[:1] == path:
                shares[inner] = min(shares[path], round(1000 * ns / whole_ns) / 10 if whole_ns else 0.0)
    return shares

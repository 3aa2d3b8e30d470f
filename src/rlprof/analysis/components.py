"""The wall time in the words of a field: components that a training names, each the operations it consists of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rlprof.analysis.breakdown import RLPROF, UNATTRIBUTED, Breakdown
from rlprof.ledger.catalogue import STARTUP
from rlprof.ledger.sharing import apportion

EVERYTHING_ELSE = "Everything else"
"""Operations that no component has."""

_OWN = {STARTUP: "Startup", UNATTRIBUTED: "Unattributed", RLPROF: "rlprof itself"}


@dataclass(frozen=True, slots=True)
class ComponentLine:
    """One line. Its parts follow it, one deeper; what no part has is in the component's own time."""

    title: str
    depth: int
    ledger_ns: int
    """With its parts."""
    share: float
    """Of the wall time, in percent with one decimal. Those of depth 0 sum to 100.0."""


@dataclass(frozen=True, slots=True)
class Components:
    wall_ns: int
    lines: tuple[ComponentLine, ...]

    def check(self) -> None:
        """Raise AssertionError where they do not add up."""
        total = sum(line.ledger_ns for line in self.lines if line.depth == 0)
        assert total == self.wall_ns, f"components sum to {total} ns, wall time is {self.wall_ns} ns"


def components(breakdown: Breakdown, named: Mapping[str, Any]) -> Components:
    """Every instant in one component. A row of the call tree belongs to the component that has its operation, or else
    to the one its parent row belongs to."""
    titles = dict(_titles(named))
    lines: dict[tuple[str, ...], int] = dict.fromkeys(_paths(named), 0)
    inherited: list[tuple[str, ...]] = []
    for row in breakdown.rows:
        del inherited[row.depth :]
        parent = inherited[-1] if inherited else (_OWN.get(row.operation, EVERYTHING_ELSE),)
        found = titles.get(row.operation, parent)
        inherited.append(found)
        for end in range(1, len(found) + 1):
            lines[found[:end]] = lines.get(found[:end], 0) + row.ledger_ns
    shares = _shares(lines, breakdown.wall_ns)
    shown = [
        ComponentLine(path[-1], len(path) - 1, ns, shares[path]) for path, ns in lines.items() if ns or path[0] in named
    ]
    return Components(breakdown.wall_ns, tuple(shown))


def component_of(named: Mapping[str, Any]) -> Callable[[str], str]:
    """What a path of operations (`rollout/env_step`) belongs to, by its titles. Without names, its last operation."""
    titles = dict(_titles(named))

    def find(path: str) -> str:
        operations = path.split("/") if path else []
        if not named:
            return operations[-1] if operations else UNATTRIBUTED
        for operation in reversed(operations):
            if operation in titles:
                return ": ".join(titles[operation])
        return _OWN.get(operations[0], EVERYTHING_ELSE) if operations else _OWN[UNATTRIBUTED]

    return find


def _titles(named: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each operation, and the titles from the outermost to its own."""
    for title, inside in named.items():
        if isinstance(inside, Mapping):
            yield from _titles(inside, (*path, title))
        else:
            for operation in inside.split():
                yield operation, (*path, title)


def _paths(named: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for title, inside in named.items():
        yield (*path, title)
        if isinstance(inside, Mapping):
            yield from _paths(inside, (*path, title))


def _shares(lines: Mapping[tuple[str, ...], int], wall_ns: int) -> dict[tuple[str, ...], float]:
    """Level by level of what the level above has, so that every sum is right in the figures that are shown."""
    shares: dict[tuple[str, ...], float] = {}
    tops = [path for path in lines if len(path) == 1]
    for path, tenths in zip(tops, apportion(1000, [lines[path] for path in tops])):
        shares[path] = tenths / 10
        for inner, ns in lines.items():
            if len(inner) > 1 and inner[:1] == path:
                shares[inner] = min(shares[path], round(1000 * ns / wall_ns) / 10 if wall_ns else 0.0)
    return shares

"""The rollout timing tree: what a step of the last rollouts consisted of, from the ledger's own account."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from rlprof import get_profiler, profile

Path = tuple[str, ...]
"""A title, and those it is under, the outermost first."""

_WHOLE = "rollout"
_RULE = "=" * 60
_BULLETS = ("    - ", "        • ")


class RolloutTiming:
    """Prints the tree every so many rollouts, while they are recorded."""

    def __init__(self, layout: Mapping[str, Any], every: int) -> None:
        self._paths = dict(_paths(layout))
        self._every = every
        self._rollouts = 0
        self._before: Counter[Path] = Counter()

    def rollout_ended(self, agent_step: int, steps: int) -> None:
        """The training has come to `agent_step`; a rollout has `steps`."""
        self._rollouts += 1
        if not self._every or self._rollouts % self._every or not get_profiler().enabled:
            return
        with profile("logging"):
            now = self._accounts()
            since = {path: (now[path] - self._before[path]) / (self._every * steps) for path in self._paths.values()}
            self._before = now
            sys.stderr.write(to_text({path: ns for path, ns in since.items() if ns > 0}, agent_step))

    def _accounts(self) -> Counter[Path]:
        """The time in rollouts so far in ns, each instant with one of the layout's innermost titles."""
        accounts: Counter[Path] = Counter()
        inside: dict[int | None, Path] = {}
        for node in get_profiler().snapshot().net_nodes:  # parents come first
            if node.operation == _WHOLE or node.parent in inside:
                inside[node.id] = self._path(str(node.operation), inside.get(node.parent, ()))
                accounts[inside[node.id]] += node.ledger_ns
        return accounts

    def _path(self, operation: str, around: Path) -> Path:
        """What has no title belongs to what called it. So does what is a part of something else: a copy to the host is
        the teacher's only inside of that."""
        path = self._paths.get(operation, around)
        return path if path[:-1] in ((), around[:-1]) or around == self._paths[_WHOLE] else around


def to_text(times: Mapping[Path, float], agent_step: int) -> str:
    """`times`: ns a step of innermost titles. Every line is the sum of those below it, also in the figures shown."""
    hundredths: Counter[Path] = Counter()
    for path, ns in times.items():
        for end in range(len(path) + 1):
            hundredths[path[:end]] += round(ns / 1e4)
    largest = max(times, key=lambda path: hundredths[path])
    lines = [_RULE, f"Rollout Timing Profile (agent_step={agent_step})", _RULE]
    lines.append(_line("  Rollout Total:", hundredths[()]))
    for path in _in_order(times):
        mark = "  <-- BOTTLENECK" if path == largest else ""
        lines.append(_line(f"{_BULLETS[len(path) - 1]}{path[-1]}:", hundredths[path]) + mark)
    return "\n".join((*lines, _RULE, ""))


def _line(title: str, hundredths: int) -> str:
    return f"{title:<25}{hundredths / 100:>6.2f} ms"


def _in_order(paths: Mapping[Path, Any]) -> list[Path]:
    """Each title that is above one of them, too, before those under it."""
    return list(dict.fromkeys(path[:end] for path in paths for end in range(1, len(path) + 1)))


def _paths(layout: Mapping[str, Any], above: Path = ()) -> Iterator[tuple[str, Path]]:
    """Each operation, and the path of its title."""
    for title, inside in layout.items():
        if isinstance(inside, Mapping):
            yield from _paths(inside, (*above, title))
        else:
            yield from ((operation, (*above, title)) for operation in inside.split())

"""The rollout timing tree: the time per step in the last rollouts, from the ledger."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from rlprof import get_profiler, profile

Path = tuple[str, ...]
"""A title after the titles above it, the outermost first."""

_WHOLE = "rollout"
_RULE = "=" * 60
_BULLETS = ("    - ", "        • ")


class RolloutTiming:
    """Prints the tree every so many rollouts, if they are recorded."""

    def __init__(self, layout: Mapping[str, Any], every: int) -> None:
        self._paths = dict(_paths(layout))
        self._every = every
        self._rollouts = 0
        self._before: Counter[Path] = Counter()

    def rollout_ended(self, agent_step: int, steps: int) -> None:
        """Count a rollout of `steps` steps, after which the training is at `agent_step`."""
        self._rollouts += 1
        if not self._every or self._rollouts % self._every or not get_profiler().enabled:
            return
        with profile("logging"):
            now = self._accounts()
            since = {path: (now[path] - self._before[path]) / (self._every * steps) for path in self._paths.values()}
            self._before = now
            sys.stderr.write(to_text({path: ns for path, ns in since.items() if ns > 0}, agent_step))

    def _accounts(self) -> Counter[Path]:
        """Time in rollouts so far, in ns, by the innermost titles of the layout."""
        accounts: Counter[Path] = Counter()
        inside: dict[int | None, Path] = {}
        for node in get_profiler().snapshot().net_nodes:  # parents come before their children
            if node.operation == _WHOLE or node.parent in inside:
                inside[node.id] = self._path(str(node.operation), inside.get(node.parent, ()))
                accounts[inside[node.id]] += node.ledger_ns
        return accounts

    def _path(self, operation: str, around: Path) -> Path:
        """An operation without a title belongs to its caller. So does an operation of another title: a copy to the host
        is the teacher's only inside the teacher."""
        path = self._paths.get(operation, around)
        return path if path[:-1] in ((), around[:-1]) or around == self._paths[_WHOLE] else around


def to_text(times: Mapping[Path, float], agent_step: int) -> str:
    """The tree for `times`, in ns per step of the innermost titles. Every figure is the sum of those below it."""
    hundredths: Counter[Path] = Counter()
    for path, ns in times.items():
        for end in range(len(path) + 1):
            hundredths[path[:end]] += round(ns / 1e4)
    largest = max(times, key=lambda path: hundredths[path])
    lines = [_RULE, f"Rollout Timing Profile (agent_step={agent_step})", _RULE]
    lines.append(_line("  Rollout Total:", hundredths[()]))
    titles = dict.fromkeys(path[:end] for path in times for end in range(1, len(path) + 1))
    for path in titles:  # each before those below it
        mark = "  <-- BOTTLENECK" if path == largest else ""
        lines.append(_line(f"{_BULLETS[len(path) - 1]}{path[-1]}:", hundredths[path]) + mark)
    return "\n".join((*lines, _RULE, ""))


def _line(title: str, hundredths: int) -> str:
    return f"{title:<25}{hundredths / 100:>6.2f} ms"


def _paths(layout: Mapping[str, Any], above: Path = ()) -> Iterator[tuple[str, Path]]:
    for title, inside in layout.items():
        if isinstance(inside, Mapping):
            yield from _paths(inside, (*above, title))
        else:
            yield from ((operation, (*above, title)) for operation in inside.split())

"""Counts environment steps and episodes, unless the program does so itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rlprof.probes.patches import Patches


class Tally:
    """Counts by one of the profiler's methods: `add_steps` or `add_episodes`.

    The first call of that method by somebody else ends it: who counts for himself knows better what to count.
    """

    def __init__(self, patches: Patches, method: str) -> None:
        self.on = True
        self.counted = 0
        self._profiler = patches.profiler
        self._method = method
        self._add: Callable[[Any], None] = getattr(patches.profiler, method)
        patches.replace(patches.profiler, method, lambda _: self._add_by_another)

    def add(self, number: int) -> None:
        if self.on:
            self.counted += number
            self._add(number)

    def _add_by_another(self, number: Any) -> None:
        setattr(self._profiler, self._method, self._add)
        if self.on and isinstance(number, int):
            number = max(0, number - self.counted)  # what it counts first was counted here already
        self.on = False
        self._add(number)

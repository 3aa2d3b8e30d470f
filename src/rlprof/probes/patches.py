"""Replaces functions of libraries by ones that are timed, and puts them back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from rlprof.ledger.profiler import Profiler


class Patches:
    """What a probe has changed. Changing the same twice changes it once."""

    def __init__(self, profiler: Profiler) -> None:
        self.profiler = profiler
        self._made: list[tuple[Any, str, Any, Any]] = []

    def time(self, owner: Any, attribute: str, operation: str, *, outermost: bool = False, **options: Any) -> bool:
        """Time each call of a class's method or a module's function; False where there is none.

        outermost: a call inside a span of the same operation is not timed again.
        options: those of `profile`.
        """

        make = partial(self.profiler.time_function, name=operation, outermost=outermost, **options)
        return self.replace(owner, attribute, make)

    def replace(self, owner: Any, attribute: str, make: Callable[[Any], Any]) -> bool:
        """Put `make(original)` in an attribute's place; False where it is not the owner's own."""
        original = vars(owner).get(attribute)
        if original is None:
            return False
        if any(made is original for _, _, _, made in self._made):
            return True
        replacement = make(original)
        setattr(owner, attribute, replacement)
        self._made.append((owner, attribute, original, vars(owner)[attribute]))
        return True

    def undo(self) -> None:
        """Put everything back, but for what somebody else has replaced since."""
        while self._made:
            owner, attribute, original, made = self._made.pop()
            if vars(owner).get(attribute) is made:
                setattr(owner, attribute, original)

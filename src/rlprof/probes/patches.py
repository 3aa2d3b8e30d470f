"""Replaces functions of libraries by timed ones, and puts them back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from rlprof.ledger.decorate import in_place_of
from rlprof.ledger.profiler import Profiler

ABSENT = object()

Around = Callable[[Any, Any], Callable[..., Any]]
"""Makes, of a function and the span of its operation, what is called in its place."""


class Patches:
    """What a probe has changed. Changing the same twice changes it once."""

    def __init__(self, profiler: Profiler) -> None:
        self.profiler = profiler
        self._made: dict[tuple[int, str], tuple[Any, Any, Any]] = {}
        """By owner and attribute: the owner, the original, what stands in its place."""
        self._stand_ins: set[int] = set()
        """The ids of what stands in some place: kept alive by the entry above."""
        self._at_undo: list[Callable[[], None]] = []

    def time(
        self,
        owner: Any,
        attribute: str,
        operation: str,
        *,
        outermost: bool = False,
        inherited: Any = None,
        **options: Any,
    ) -> bool:
        """Time each call of a class's method or a module's function; False where there is none.

        outermost: a call inside a span of the same operation is not timed again.
        inherited: see `replace`.
        options: those of `profile`.
        """

        make = partial(self.profiler.time_function, name=operation, outermost=outermost, **options)
        return self.replace(owner, attribute, make, inherited)

    def around(self, owner: Any, attribute: str, operation: str, make: Around, **options: Any) -> bool:
        """Let `make(function, span)` be called in the place of a plain function, outermost only; it times for itself.

        options: those of `profile`.
        """
        span = self.profiler.profile(operation, **options)
        timed = self.profiler.timed_type

        def make_timed(function: Any) -> Any:
            around = make(function, span)
            return in_place_of(function, lambda method: timed(span, function, method, True, around))

        return self.replace(owner, attribute, make_timed)

    def follow(
        self,
        owner: Any,
        attribute: str,
        operation: str,
        loop: Any,
        kind: str,
        *,
        family: tuple[str, ...] = (),
        hidden: bool = False,
        inherited: Any = None,
        **options: Any,
    ) -> bool:
        """Time a plain function, outermost only, and let the loop know of its calls, which are of a kind that it knows.

        family: further operations inside which a call is not timed.
        hidden: `owner.attribute` shows the function itself, and only calls by an operator (`module(x)`) are timed.
        inherited: see `replace`.
        options: those of `profile`.
        """
        profile, timed = self.profiler.profile, self.profiler.timed_type
        hidden = hidden and self.profiler.core == "c"  # an operator asks a Python object for its method, too
        span = profile(operation, **options)
        others = tuple(profile(name) for name in family)

        def make_timed(function: Any) -> Any:
            def make(method: Any) -> Any:
                return timed(span, function, function if hidden else method, True, None, others, loop, kind)

            return in_place_of(function, make)

        return self.replace(owner, attribute, make_timed, inherited)

    def replace(self, owner: Any, attribute: str, make: Callable[[Any], Any], inherited: Any = None) -> bool:
        """Put `make(original)` in an attribute's place; False where it is not the owner's own.

        inherited: what counts as the original then. Undone, the owner has none of its own again.
        """
        original = vars(owner).get(attribute, ABSENT)
        if original is None or (original is ABSENT and inherited is None):
            return False
        if self._is_made(owner, attribute, original):
            return True
        self._set(owner, attribute, original, make(inherited if original is ABSENT else original))
        return True

    def put(self, owner: Any, attribute: str, value: Any) -> None:
        """Give an owner an attribute, which need not be there."""
        present = vars(owner).get(attribute, ABSENT)
        if not self._is_made(owner, attribute, present):
            self._set(owner, attribute, present, value)

    def at_undo(self, function: Callable[[], None]) -> None:
        self._at_undo.append(function)

    def undo(self) -> None:
        """Put everything back, except attributes that other code has replaced since."""
        while self._made:
            (_, attribute), (owner, original, made) = self._made.popitem()
            if vars(owner).get(attribute) is not made:
                continue
            if original is ABSENT:
                delattr(owner, attribute)
            else:
                setattr(owner, attribute, original)
        self._stand_ins.clear()
        while self._at_undo:
            self._at_undo.pop()()

    def _is_made(self, owner: Any, attribute: str, present: Any) -> bool:
        # A class may hold what another one was given: `class Child: step = Parent.step`.
        return (id(owner), attribute) in self._made or id(present) in self._stand_ins

    def _set(self, owner: Any, attribute: str, original: Any, value: Any) -> None:
        setattr(owner, attribute, value)
        if isinstance(owner, type) and hasattr(type(value), "__set_name__"):
            value.__set_name__(owner, attribute)  # as where a class is made
        made = vars(owner)[attribute]
        self._made[id(owner), attribute] = owner, original, made
        self._stand_ins.add(id(made))


def below(cls: Any) -> list[Any]:
    """A class's subclasses, and theirs."""
    return [found for child in cls.__subclasses__() for found in (child, *below(child))]

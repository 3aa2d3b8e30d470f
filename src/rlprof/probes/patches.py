"""Replaces functions of libraries by timed ones, and restores them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from rlprof.ledger.decorate import in_place_of
from rlprof.ledger.profiler import Profiler

ABSENT = object()

Around = Callable[[Any, Any], Callable[..., Any]]
"""Given a function and the span of its operation, makes the function that is called instead."""


class Patches:
    """The changes that a probe has made. A change that is made twice is made once."""

    def __init__(self, profiler: Profiler) -> None:
        self.profiler = profiler
        self._made: dict[tuple[int, str], tuple[Any, Any, Any]] = {}
        """By owner and attribute: the owner, the original and its replacement."""
        self._replacements: set[int] = set()
        """Ids of the replacements, which the entries above keep alive."""
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
        """Time each call of a method or a function. Returns False if the owner does not define it.

        outermost: a call inside a span of the same operation is not timed again.
        inherited: see `replace`.
        options: options of `profile`.
        """
        make = partial(self.profiler.time_function, name=operation, outermost=outermost, **options)
        return self.replace(owner, attribute, make, inherited)

    def around(self, owner: Any, attribute: str, operation: str, make: Around, **options: Any) -> bool:
        """Replace a plain function by `make(function, span)`, which opens the span itself. Outermost calls only.

        options: options of `profile`.
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
        """Time the outermost calls of a plain function, and report them to the loop as calls of this kind.

        family: further operations inside which a call is not timed.
        hidden: `owner.attribute` shows the original function, and only calls by an operator (`module(x)`) are timed.
        inherited: see `replace`.
        options: options of `profile`.
        """
        profile, timed = self.profiler.profile, self.profiler.timed_type
        hidden = hidden and self.profiler.core == "c"  # on the Python core, an operator finds the same attribute
        span = profile(operation, **options)
        others = tuple(profile(name) for name in family)

        def make_timed(function: Any) -> Any:
            def make(method: Any) -> Any:
                return timed(span, function, function if hidden else method, True, None, others, loop, kind)

            return in_place_of(function, make)

        return self.replace(owner, attribute, make_timed, inherited)

    def replace(self, owner: Any, attribute: str, make: Callable[[Any], Any], inherited: Any = None) -> bool:
        """Replace an attribute by `make(original)`. Returns False if the owner does not define it.

        inherited: used as the original if the owner does not define one. `undo` removes the replacement again.
        """
        original = vars(owner).get(attribute, ABSENT)
        if original is None or (original is ABSENT and inherited is None):
            return False
        if self._is_made(owner, attribute, original):
            return True
        self._set(owner, attribute, original, make(inherited if original is ABSENT else original))
        return True

    def put(self, owner: Any, attribute: str, value: Any) -> None:
        """Set an attribute, which need not exist."""
        present = vars(owner).get(attribute, ABSENT)
        if not self._is_made(owner, attribute, present):
            self._set(owner, attribute, present, value)

    def attempt(self, function: Callable[..., Any], *args: Any, otherwise: str) -> None:
        """Call a function inside the program's own code. If it fails, warn with `otherwise`, and go on."""
        try:
            function(*args)
        except Exception as error:
            self.profiler.warn(otherwise, error)

    def at_undo(self, function: Callable[[], None]) -> None:
        self._at_undo.append(function)

    def undo(self) -> None:
        """Restore everything, except attributes that other code has replaced since."""
        while self._made:
            (_, attribute), (owner, original, made) = self._made.popitem()
            if vars(owner).get(attribute) is not made:
                continue
            if original is ABSENT:
                delattr(owner, attribute)
            else:
                setattr(owner, attribute, original)
        self._replacements.clear()
        while self._at_undo:
            self._at_undo.pop()()

    def _is_made(self, owner: Any, attribute: str, present: Any) -> bool:
        # A class may hold the replacement of another one: `class Child: step = Parent.step`.
        return (id(owner), attribute) in self._made or id(present) in self._replacements

    def _set(self, owner: Any, attribute: str, original: Any, value: Any) -> None:
        setattr(owner, attribute, value)
        if isinstance(owner, type) and hasattr(type(value), "__set_name__"):
            value.__set_name__(owner, attribute)  # as at the creation of a class
        made = vars(owner)[attribute]
        self._made[id(owner), attribute] = owner, original, made
        self._replacements.add(id(made))


def with_subclasses(cls: Any) -> Iterator[Any]:
    """A class and all classes derived from it. A class with two bases may come twice."""
    yield cls
    for child in type.__subclasses__(cls):
        yield from with_subclasses(child)

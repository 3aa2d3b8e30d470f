"""The twin's spans: what `profile(name)` returns, and the wrapper it puts round a plain function."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import TYPE_CHECKING, Any

from rlprof.ledger import compiled
from rlprof.ledger.compiled import compiling

if TYPE_CHECKING:
    from rlprof.ledger.twin.ledger import Ledger
    from rlprof.ledger.twin.records import Operation


class Span:
    """One operation, to be timed: a context manager and a decorator."""

    __slots__ = ("device", "ledger", "operation", "track_memory", "wait")

    def __init__(
        self, ledger: Ledger, operation: Operation, track_memory: bool, wait: bool, device: bool | None
    ) -> None:
        self.ledger = ledger
        self.operation = operation
        self.track_memory = track_memory
        self.wait = wait
        self.device = device

    @property
    def name(self) -> str:
        return self.operation.name

    @property
    def arguments(self) -> tuple[str, bool, None, bool, bool | None]:
        return self.name, self.track_memory, None, self.wait, self.device

    def __enter__(self) -> Span:
        self.ledger.enter(self)
        return self

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        self.ledger.exit(self)

    def __call__(self, function: Any) -> Any:
        return self.ledger.hooks.decorate(self, function)

    def __reduce__(self) -> Any:
        return self.ledger.recorder, self.arguments

    def __repr__(self) -> str:
        memory = ", track_memory=True" if self.track_memory else ""
        return f"profile({self.name!r}{memory}{', wait=True' if self.wait else ''})"


class Timed:
    """A callable that times its calls and otherwise is the function."""

    def __init__(
        self,
        span: Span,
        function: Callable[..., Any],
        method: Callable[..., Any],
        outermost: bool = False,
        around: Callable[..., Any] | None = None,
        family: tuple[Span, ...] = (),
        loop: Any = None,
        kind: str = "forward",
    ) -> None:
        self._span = span
        self._method = method
        self._outermost = outermost
        self._around = around
        self._loop = loop
        self._kind = kind
        self._family = (span, *family)
        self.__wrapped__ = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        ledger = self._span.ledger
        if compiling() or (self._outermost and ledger.is_inside(self._family, self._span.wait)):
            return self.__wrapped__(*args, **kwargs)
        if ledger.enabled and self._loop is not None:
            return self._in_loop(self._loop, args, kwargs)
        if ledger.enabled and self._around is not None:
            return self._around(*args, **kwargs)
        with self._span:
            return self.__wrapped__(*args, **kwargs)

    def _in_loop(self, loop: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        call = loop.before(self._kind, self._span, [*args, *kwargs.values()])
        try:
            with call[0]:
                result = self.__wrapped__(*args, **kwargs)
        finally:
            loop.leave(call)
        loop.after(self._kind, call, result)
        return result

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if compiling():
            return compiled.get(self, instance, owner)
        return self._method if instance is None else MethodType(self._method, instance)

    def __reduce__(self) -> Any:
        return self._span.ledger.hooks.reduce_function(self._span, self.__wrapped__)

    def __repr__(self) -> str:
        return f"<profiled {self.__wrapped__!r}>"

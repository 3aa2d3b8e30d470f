"""Timing a function's calls, whatever kind of function it is."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Callable, Generator
from functools import wraps
from typing import Any

from rlprof.ledger.interface import Span


def decorate(
    span: Span, function: Any, recorder: Callable[..., Span], timed: Callable[..., Any], outermost: bool = False
) -> Any:
    """The function with its calls timed; `timed(span, function, method, outermost)` wraps a plain function.

    outermost: do not time a call directly inside a span of the same operation.
    """
    if isinstance(function, staticmethod):
        return staticmethod(decorate(span, function.__func__, recorder, timed, outermost))
    if isinstance(function, classmethod):
        # torch.compile must find a Python function inside a class method.
        return classmethod(decorate(span, function.__func__, recorder, lambda _span, _function, method, _: method))
    if isinstance(function, type) or not callable(function):
        kind = "the class" if isinstance(function, type) else type(function).__name__
        name = getattr(function, "__name__", repr(function))
        raise TypeError(f"only functions can be profiled, not {kind} {name}; decorate its methods")
    import inspect  # noqa: PLC0415 - slow to import, and not every process decorates

    if inspect.iscoroutinefunction(function):
        return _timed_coroutine(span, function)
    if inspect.isasyncgenfunction(function):
        return _timed_async_generator(span, function)
    if inspect.isgeneratorfunction(function):
        return _timed_generator(span, function)
    if not outermost:
        return _like(timed(span, function, _timed_method(span, function, recorder), False), function)
    return in_place_of(function, lambda method: timed(span, function, method, True))


def in_place_of(function: Any, make: Callable[[Any], Any]) -> Any:
    """What `make` returns, with the function's name and attributes. `make` gets a Python function that does the same,
    for bound methods. It is here and not with the probes, because torch.compile skips the code of the probes."""

    @wraps(function)
    def method(*args: Any, **kwargs: Any) -> Any:
        return wrapper(*args, **kwargs)

    wrapper = _like(make(method), function)
    return wrapper


def reduce(span: Span, function: Any) -> str | tuple[Any, ...]:
    """How a timed function is pickled: by its name, as functions are.

    cloudpickle sends functions whole that another process could not import. Called by cloudpickle, this does the same.
    """
    name: str = function.__qualname__
    importable = function.__module__ != "__main__" and "<" not in name
    return name if importable or not _called_by_cloudpickle() else (_again, (span, function))


def _called_by_cloudpickle() -> bool:
    frame = sys._getframe() if "cloudpickle" in sys.modules else None
    while frame is not None and not frame.f_globals.get("__name__", "").startswith("cloudpickle"):
        frame = frame.f_back
    return frame is not None


def _again(span: Any, function: Any) -> Any:
    return span(function)


def _like(wrapper: Any, function: Any) -> Any:
    for name in ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__"):
        if hasattr(function, name):
            setattr(wrapper, name, getattr(function, name))
    wrapper.__dict__.update(getattr(function, "__dict__", {}))
    return wrapper


def _timed_method(span: Any, function: Any, recorder: Callable[..., Span]) -> Any:
    """The same in Python. It gets the span at each call, because torch.compile can trace that."""
    arguments = span.arguments

    @wraps(function)
    def method(*args: Any, **kwargs: Any) -> Any:
        with recorder(*arguments):
            return function(*args, **kwargs)

    return method


def _timed_coroutine(span: Span, function: Any) -> Any:
    @wraps(function)
    async def coroutine(*args: Any, **kwargs: Any) -> Any:
        with span:
            return await function(*args, **kwargs)

    return coroutine


def _timed_generator(span: Span, function: Any) -> Any:
    """One call per item: the span is open only while the generator itself runs, not while its consumer does."""

    @wraps(function)
    def generator(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        inner = function(*args, **kwargs)
        resume: Callable[[], Any] = inner.__next__
        while True:
            try:
                with span:
                    item = resume()
            except StopIteration as stop:
                return stop.value
            try:
                sent = yield item
            except GeneratorExit:
                with span:
                    inner.close()
                raise
            except BaseException as error:
                resume = _call(inner.throw, error)
            else:
                resume = inner.__next__ if sent is None else _call(inner.send, sent)

    return generator


def _timed_async_generator(span: Span, function: Any) -> Any:
    @wraps(function)
    async def generator(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        inner = function(*args, **kwargs)
        resume: Callable[[], Any] = inner.__anext__
        while True:
            try:
                with span:
                    item = await resume()
            except StopAsyncIteration:
                return
            try:
                sent = yield item
            except GeneratorExit:
                with span:
                    await inner.aclose()
                raise
            except BaseException as error:
                resume = _call(inner.athrow, error)
            else:
                resume = _call(inner.asend, sent)

    return generator


def _call(function: Callable[[Any], Any], argument: Any) -> Callable[[], Any]:
    return lambda: function(argument)

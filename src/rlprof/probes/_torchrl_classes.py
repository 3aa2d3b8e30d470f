"""Times methods that subclasses override: those of the library, and those that the training brings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from types import FunctionType
from typing import Any

from rlprof.probes.patches import Patches

Named = Callable[[str], str | None]
"""The operation of a method, by the method's name; None for one that is not timed."""


def time_family(patches: Patches, base: type, named: Named, **options: Any) -> None:
    """Time the methods of a class and its subclasses, outermost: one that calls its parent's is one call.

    A subclass made later is timed from the first time that one of its objects is made.
    """
    seen: set[type] = set()

    def time_class(kind: type) -> None:
        for ancestor in kind.__mro__:
            if ancestor not in seen and issubclass(ancestor, base):
                seen.add(ancestor)
                for name, value in list(vars(ancestor).items()):
                    operation = named(name) if isinstance(value, FunctionType) else None
                    if operation is not None:
                        patches.time(ancestor, name, operation, outermost=True, **options)

    for kind in _family(base):
        time_class(kind)
    warn = patches.profiler.warn

    def watch(original: Any) -> Any:
        @wraps(original)
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it is shown in tracebacks
            if type(self) not in seen:
                try:
                    time_class(type(self))
                except Exception as error:
                    warn(f"{type(self).__name__} is not timed", error)
            original(self, *args, **kwargs)

        return __init__

    patches.replace(base, "__init__", watch)


def time_calls(patches: Patches, base: type, operation: str) -> None:
    """Time `module(...)` of a kind of modules, whichever `forward` that runs.

    The call goes past torch's probe, for which it would be any module's. Who looks at the class, as torch.compile does,
    sees the method that it inherits.
    """
    call = base.__call__
    profiler = patches.profiler
    patches.put(base, "__call__", profiler.timed_type(profiler.profile(operation), call, call, True))


def _family(base: type) -> Iterator[type]:
    yield base
    kind: type
    for kind in type.__subclasses__(base):
        yield from _family(kind)

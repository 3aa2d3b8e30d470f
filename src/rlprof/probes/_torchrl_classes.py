"""Times methods that subclasses override, in TorchRL and in the training."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any

from rlprof.probes.patches import Patches, with_subclasses

Named = Callable[[str], str | None]
"""Returns the operation for the name of a method; None if the method is not timed."""


def time_family(
    patches: Patches, base: type, named: Named, made: Callable[[Any], None] | None = None, **options: Any
) -> None:
    """Time the outermost calls of methods of a class and its subclasses. A call of the parent's method is part of it.

    A subclass that is defined later is timed from the creation of its first object.

    made: called with every new object of the class.
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

    for kind in with_subclasses(base):
        time_class(kind)

    def watch(original: Any) -> Any:
        @wraps(original)
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it is shown in tracebacks
            if type(self) not in seen:
                patches.attempt(time_class, type(self), otherwise=f"{type(self).__name__} is not timed")
            original(self, *args, **kwargs)
            if made is not None:
                made(self)

        return __init__

    patches.replace(base, "__init__", watch)


def time_calls(patches: Patches, base: type, operation: str, loop: Any = None) -> None:
    """Time `module(...)` for a kind of modules, whichever `forward` it runs.

    The call bypasses torch's probe, to which all modules are the same. torch.compile, which looks at the class, sees
    the inherited method.

    loop: is given the calls as those of losses.
    """
    call = base.__call__
    profiler = patches.profiler
    timed = profiler.timed_type(profiler.profile(operation), call, call, True, None, (), loop, "loss")
    patches.put(base, "__call__", timed)

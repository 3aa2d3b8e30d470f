"""What torch.compile sees of a span: nothing.

Timing inside a compiled graph would break it, and the graph runs as one piece anyway: put the span round the call. So
under torch.compile a span is a no-op that Dynamo can trace. Dynamo replaces a method by the Python function that the
object's type holds under the method's name; the C types therefore hold the functions below under the names of their
builtins. Only Dynamo looks there.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from functools import partial
from typing import Any


def profile(
    self: Any,  # noqa: ARG001 - the signature is the builtin's
    name: str,  # noqa: ARG001
    track_memory: bool = False,  # noqa: ARG001
    category: str | None = None,  # noqa: ARG001
    wait: bool = False,  # noqa: ARG001
    device: bool | None = None,  # noqa: ARG001
) -> nullcontext[None]:
    """Traced in place of Ledger.profile."""
    return nullcontext()


def call(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Traced in place of calling a profiled function."""
    return self.__wrapped__(*args, **kwargs)


def get(self: Any, instance: Any, owner: type | None = None) -> Any:  # noqa: ARG001
    """Traced in place of binding a profiled method."""
    return self if instance is None else partial(self.__wrapped__, instance)


def compiling() -> bool:
    """Whether torch.compile is tracing the caller. The twin, which Dynamo can look into, asks."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.compiler.is_compiling()

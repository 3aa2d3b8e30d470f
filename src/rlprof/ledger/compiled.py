"""Spans under torch.compile: no-ops that Dynamo can trace.

Timing inside a compiled graph would break it, and the graph runs as one piece anyway: put the span around the call.
Dynamo replaces a method by the Python function that the object's type holds under the method's name. So the C types
hold the functions below under the names of their builtins. Only Dynamo looks there.
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
    """True if torch.compile is tracing the caller. The twin needs this, because Dynamo traces its code, too."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.compiler.is_compiling()

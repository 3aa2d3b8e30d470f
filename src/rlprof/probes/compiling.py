"""torch.compile: each compilation is an operation of its own, inside the call that caused it."""

from __future__ import annotations

from contextlib import suppress
from types import ModuleType
from typing import Any

from rlprof.probes.patches import Patches


def attach_callbacks(callback: ModuleType, patches: Patches) -> None:
    """Time each compilation as the operation `compile`."""
    handler = callback.callback_handler
    span = patches.profiler.profile("compile")

    def begin(_args: Any = None) -> None:
        with suppress(Exception):  # an exception would reach the program
            span.__enter__()

    def end(_args: Any = None) -> None:
        with suppress(Exception):
            span.__exit__(None, None, None)

    def undo() -> None:
        with suppress(ValueError):  # torch._dynamo.reset() removes all callbacks
            handler.remove_start_callback(begin)
        with suppress(ValueError):
            handler.remove_end_callback(end)

    handler.register_start_callback(begin)
    handler.register_end_callback(end)
    patches.at_undo(undo)

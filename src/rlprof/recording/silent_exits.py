"""Exits that call no handler: `os._exit`, and `exec`, which replaces the process by another program.

While something is recorded these functions are wrapped: they complete the session first, and then do what they always
do.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import Any

OnExit = Callable[[str], None]
"""Called with how the process ends, just before it does."""


class SilentExits:
    """Wraps the functions. May be installed and removed repeatedly."""

    def __init__(self, on_exit: OnExit) -> None:
        self._replaced: dict[str, tuple[Any, Any]] = {}
        self._on_exit = on_exit

    def install(self) -> None:
        for name, make in _FUNCTIONS.items():
            if name not in self._replaced:
                original = getattr(os, name)
                self._replaced[name] = original, make(original, self._on_exit)
                setattr(os, name, self._replaced[name][1])

    def remove(self) -> None:
        """A function that other code has replaced since stays as it is."""
        for name, (original, ours) in self._replaced.items():
            if getattr(os, name) is ours:
                setattr(os, name, original)
        self._replaced.clear()


def _exiting(original: Any, on_exit: OnExit) -> Any:
    @wraps(original)
    def _exit(status: int) -> None:
        try:
            if isinstance(status, int):  # else os._exit raises and does not end the process
                on_exit(f"os._exit({status})")
        finally:
            original(status)

    return _exit


def _replacing(original: Any, on_exit: OnExit) -> Any:
    @wraps(original)
    def replace(path: Any, *args: Any, **kwargs: Any) -> None:
        # `execvp` tries every folder of the PATH, and a file that does not exist replaces nothing.
        try:
            if _can_be_run(path):
                on_exit("replaced by exec")
        finally:
            original(path, *args, **kwargs)

    return replace


_FUNCTIONS = {"_exit": _exiting, "execv": _replacing, "execve": _replacing}
"""The other variants of exec call one of these."""


def _can_be_run(path: Any) -> bool:
    try:
        return isinstance(path, int) or (os.access(path, os.X_OK) and os.path.isfile(path))
    except (OSError, TypeError, ValueError):
        return False

"""Ends that no handler is told of: `os._exit`, and another program in the process's place.

The functions are replaced while something is recorded, and do what they did, once the session is complete.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import Any

Leaving = Callable[[str], None]
"""Called with how the process ends, just before."""


class Departures:
    """Installed and removed as often as one likes."""

    def __init__(self, leaving: Leaving) -> None:
        self._replaced: dict[str, tuple[Any, Any]] = {}
        self._leaving = leaving

    def install(self) -> None:
        for name, make in _FUNCTIONS.items():
            if name not in self._replaced:
                original = getattr(os, name)
                self._replaced[name] = original, make(original, self._leaving)
                setattr(os, name, self._replaced[name][1])

    def remove(self) -> None:
        """But for what somebody else has replaced since."""
        for name, (original, ours) in self._replaced.items():
            if getattr(os, name) is ours:
                setattr(os, name, original)
        self._replaced.clear()


def _exiting(original: Any, leaving: Leaving) -> Any:
    @wraps(original)
    def _exit(status: int) -> None:
        try:
            if isinstance(status, int):  # else it does not end the process
                leaving(f"os._exit({status})")
        finally:
            original(status)

    return _exit


def _replacing(original: Any, leaving: Leaving) -> Any:
    @wraps(original)
    def replace(path: Any, *args: Any, **kwargs: Any) -> None:
        # One that is not there does not replace anything: `execvp` tries every folder of the PATH.
        try:
            if _can_be_run(path):
                leaving("replaced by exec")
        finally:
            original(path, *args, **kwargs)

    return replace


_FUNCTIONS = {"_exit": _exiting, "execv": _replacing, "execve": _replacing}
"""The other kinds of exec come down to these two."""


def _can_be_run(path: Any) -> bool:
    try:
        return isinstance(path, int) or (os.access(path, os.X_OK) and os.path.isfile(path))
    except (OSError, TypeError, ValueError):
        return False

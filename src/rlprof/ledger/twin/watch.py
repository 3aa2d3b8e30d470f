"""A function that every span is reported to: see core/watch.c."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rlprof.ledger.twin.span import Span

Watcher = Callable[[str, bool], None]


class Watch:
    def __init__(self, hooks: Any) -> None:
        self._hooks = hooks
        self._watcher: Watcher | None = None
        self._reporting = False
        self._pending: list[tuple[str, bool]] = []

    def set(self, watcher: Watcher | None) -> None:
        self._watcher = watcher

    def note(self, span: Span, begins: bool) -> None:
        """While the ledger is locked."""
        if self._watcher is not None and not self._reporting:
            self._pending.append((span.operation.name, begins))

    def report(self) -> None:
        """When it is not locked: the watcher may use the ledger."""
        if not self._pending or self._reporting:
            return
        self._reporting = True
        pending, self._pending = self._pending, []
        try:
            for name, begins in pending:
                if self._watcher is not None:
                    self._watcher(name, begins)
        except Exception as error:
            self._watcher = None
            self._hooks.warn("the watcher of spans has failed and is no longer called", error)
        finally:
            self._reporting = False

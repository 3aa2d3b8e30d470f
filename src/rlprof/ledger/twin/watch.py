"""A watcher that every span is reported to: see core/watch.c."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rlprof.ledger.twin.span import Span

Watcher = Callable[[str, bool], None]


class Watch:
    def __init__(self, hooks: Any) -> None:
        self._hooks = hooks
        self._watcher: Watcher | None = None
        self._telling = False
        self._untold: list[tuple[str, bool]] = []

    def set(self, watcher: Watcher | None) -> None:
        self._watcher = watcher

    def note(self, span: Span, begins: bool) -> None:
        """While the ledger is locked."""
        if self._watcher is not None and not self._telling:
            self._untold.append((span.operation.name, begins))

    def tell(self) -> None:
        """When it is not."""
        if not self._untold or self._telling:
            return
        self._telling = True
        untold, self._untold = self._untold, []
        try:
            for name, begins in untold:
                if self._watcher is not None:
                    self._watcher(name, begins)
        except Exception as error:
            self._watcher = None
            self._hooks.warn("the watcher of spans has failed and is no longer called", error)
        finally:
            self._telling = False

"""Spans of the ledger as annotations of a torch trace, for as long as it is recorded."""

from __future__ import annotations

from threading import get_ident
from typing import Any

from rlprof.capture.spans import watch_spans
from rlprof.ledger.profiler import Profiler


class Marks:
    """Of the thread that makes it. Those that are open at the start are opened in the trace, too; those that are open
    at the end are closed there."""

    def __init__(self, profiler: Profiler) -> None:
        import torch  # noqa: PLC0415 - who captures has it

        self._enter = torch.ops.profiler._record_function_enter_new
        self._exit = torch.ops.profiler._record_function_exit._RecordFunction
        self._thread = get_ident()
        self._open: list[tuple[str, Any]] = []
        self._between: list[str] = profiler.ledger.open_operations()
        """Open spans that are not in the trace: no step has begun."""
        # Before anybody else: who ends a step where a span ends finds it ended here.
        self._unwatch = watch_spans(profiler, self._watch, first=True)

    def begin_step(self, number: int) -> None:
        """Around everything that is open: a step is the outermost annotation."""
        self._begin(f"ProfilerStep#{number}")
        for name in self._between:
            self._begin(name)
        self._between = []

    def end_step(self) -> None:
        self._between = [name for name, _ in self._open[1:]]
        self._end_all()

    def close(self) -> None:
        self._unwatch()
        self._end_all()

    def forget(self) -> None:
        """Something failed: nothing is asked of torch any more."""
        self._unwatch()
        self._open.clear()

    def _watch(self, name: str, begins: bool) -> None:
        if get_ident() != self._thread:
            return
        if not self._open:  # between two steps
            if begins:
                self._between.append(name)
            elif name in self._between:
                self._between.remove(name)
            return
        if begins:
            self._begin(name)
            return
        # Mostly the innermost. Annotations nest, so that what began inside of one that ends out of order ends, too, and
        # begins again.
        for place in range(len(self._open) - 1, -1, -1):
            if self._open[place][0] == name:
                again = [other for other, _ in self._open[place + 1 :]]
                self._end_down_to(place)
                for other in again:
                    self._begin(other)
                return

    def _begin(self, name: str) -> None:
        self._open.append((name, self._enter(name, None)))

    def _end_down_to(self, place: int) -> None:
        while len(self._open) > place:
            self._exit(self._open.pop()[1])

    def _end_all(self) -> None:
        self._end_down_to(0)

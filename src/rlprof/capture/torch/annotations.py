"""Writes spans as annotations into a torch trace while it is recorded."""

from __future__ import annotations

from threading import get_ident
from typing import Any

from rlprof.capture.spans import watch_spans
from rlprof.ledger.profiler import Profiler


class SpanAnnotations:
    """Annotates the spans of the thread that makes it. Spans that are open at the start begin in the trace there, and
    spans that are open at the end end there."""

    def __init__(self, profiler: Profiler) -> None:
        import torch  # noqa: PLC0415 - only where it is installed

        self._enter = torch.ops.profiler._record_function_enter_new
        self._exit = torch.ops.profiler._record_function_exit._RecordFunction
        self._thread = get_ident()
        self._open: list[tuple[str, Any]] = []
        self._between: list[str] = profiler.ledger.open_operations()
        """Open spans that are not in the trace, because no step has begun."""
        # Before all other watchers: one that ends a step at the end of a span finds the annotation already closed.
        self._unwatch = watch_spans(profiler, self._watch, first=True)

    def begin_step(self, number: int) -> None:
        """Begin the annotation of a step around all open spans: a step is the outermost annotation."""
        self._begin(f"ProfilerStep#{number}")
        for name in self._between:
            self._begin(name)
        self._between = []

    def end_step(self) -> None:
        self._between = [name for name, _ in self._open[1:]]
        self._end_down_to(0)

    def close(self) -> None:
        self._unwatch()
        self._end_down_to(0)

    def forget(self) -> None:
        """The capture has failed: do not call torch any more."""
        self._unwatch()
        self._open.clear()

    def _watch(self, name: str, begins: bool) -> None:
        if get_ident() != self._thread:
            return
        if not self._open:  # no step is under way
            if begins:
                self._between.append(name)
            elif name in self._between:
                self._between.remove(name)
            return
        if begins:
            self._begin(name)
            return
        # Mostly the innermost span ends. Annotations must nest: if a span ends out of order, those inside it end too
        # and begin again.
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

"""Finds the steps of a training for a capture, by the events of its probes, its marks and its spans."""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import TYPE_CHECKING

from rlprof.capture.spans import watch_spans
from rlprof.capture.torch.schedule import ENV_STEP, EPOCH, ITERATION
from rlprof.ledger.profiler import Profiler

if TYPE_CHECKING:
    from rlprof.capture.torch.capture import TorchCapture

_STEPPED = "env_step"


class StepFinder:
    """Active until the capture is done. The first step begins at the first boundary that is seen."""

    def __init__(self, profiler: Profiler, capture: TorchCapture) -> None:
        self._profiler = profiler
        self._capture = capture
        self._iterations = 0
        self._epochs = 0
        self._ends: list[Callable[[], None]] = [profiler.listen(self._on_event)]
        if capture.kind == ENV_STEP:
            self._ends.append(watch_spans(profiler, self._on_span))

    def end(self) -> None:
        while self._ends:
            self._ends.pop()()

    def _on_event(self, what: str) -> None:
        if get_ident() != self._profiler.driver:
            return
        capture = self._capture
        if what == "plan":
            self._plan()
        if what == EPOCH:
            self._epochs += 1
        elif what == ITERATION:
            self._iterations += 1
            if capture.kind == EPOCH and not self._epochs and self._iterations > 1:
                capture.kind = ITERATION
                capture.log("rlprof cannot see the epochs of this training, so a step of the capture is an iteration")
                self._plan()
        if what == capture.kind:
            self._boundary()
        if what == ITERATION:
            capture.iteration_begins()

    def _plan(self) -> None:
        if self._capture.kind in self._profiler.planned:
            self._capture.plan(self._profiler.planned[self._capture.kind])

    def _on_span(self, name: str, begins: bool) -> None:
        if name == _STEPPED and not begins and get_ident() == self._profiler.driver:
            self._boundary()

    def _boundary(self) -> None:
        if self._capture.started:
            self._capture.step()
        else:
            self._capture.start()
        if self._capture.is_done:
            self.end()

"""Trainings with planted times, on a clock that moves only when work is done."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from fakes import Fake

from rlprof import SpanCost
from rlprof.analysis.breakdown import Breakdown, breakdown
from rlprof.analysis.training import training_part


class Planted(Fake):
    """A profiler that records on a fake clock, with a planted cost per span if one is given."""

    def __init__(self, cost: SpanCost | None = None) -> None:
        super().__init__("auto", start=0)
        self.profiler.span_costs = [cost or SpanCost()]

    def work(self, operation: str, wall: int, cpu: int | None = None, **options: Any) -> None:
        with self.profile(operation, **options):
            self.tick(wall, cpu)

    def breakdown(self) -> Breakdown:
        self.profiler.disable()
        snapshot = self.profiler.snapshot()
        snapshot.check()
        result = breakdown(training_part(snapshot))
        result.check()
        return result


def in_thread(work: Callable[[], None]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


class Together:
    """A block during which all threads are inside their span."""

    def __init__(self, planted: Planted, threads: int, operation: str) -> None:
        self._inside = threading.Barrier(threads + 1)
        self._over = threading.Event()

        def work() -> None:
            with planted.profile(operation):
                self._inside.wait(10)
                self._over.wait(10)

        self._threads = [threading.Thread(target=work, name=f"env-{i}") for i in range(threads)]

    def __enter__(self) -> None:
        for thread in self._threads:
            thread.start()
        self._inside.wait(10)

    def __exit__(self, *exception: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

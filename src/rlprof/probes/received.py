"""Has a driver that steps no environment itself received new data? It waits for what its workers have collected."""

from __future__ import annotations

from rlprof.ledger.profiler import Profiler

PATIENCE = 5_000
"""Backward passes without a wait. A driver that learns for longer without waiting gets its data in another way."""


class Received:
    def __init__(self, profiler: Profiler) -> None:
        self._profiler = profiler
        self._waits = 0
        self._patience = 0

    def anything(self) -> bool:
        """True if the driver has waited since the last call, or if its waits tell nothing: while it learns, its workers
        step on, so that new steps alone do not say that it has them."""
        waits = self._profiler.driver_waits
        if waits != self._waits:
            self._waits, self._patience = waits, PATIENCE
            return True
        self._patience -= 1
        return self._patience <= 0

"""A clock that only the test moves, and threads that act only on request."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable
from typing import Any

from rlprof import Profiler, Snapshot

# `make sanitize` tests the C core only.
CORES = tuple(os.environ.get("RLPROF_TEST_CORES", "c python").split())


class Fake:
    """A profiler whose clock moves only on request, in ns."""

    def __init__(self, core: str, start: int = 1_000) -> None:
        self.profiler = Profiler(core, clock="fake")
        self.wall = start
        self.cpu = 0
        self.profiler.ledger.set_time(start, 0)
        self.profiler.enable()
        self.profile = self.profiler.profile

    def tick(self, wall: int, cpu: int | None = None) -> None:
        """Let time pass. All of it is CPU time by default."""
        self.wall += wall
        self.cpu += wall if cpu is None else cpu
        self.profiler.ledger.set_time(self.wall, self.cpu)

    def snapshot(self) -> Snapshot:
        snapshot = self.profiler.snapshot()
        snapshot.check()
        return snapshot

    def ledger(self) -> dict[str, int]:
        """Each account's share of the driver's time, with `unattributed`."""
        snapshot = self.snapshot()
        accounts = {account.operation: account.ledger_ns for account in snapshot.accounts}
        return {**accounts, "unattributed": snapshot.unattributed_ns}

    def raw(self) -> dict[str, Any]:
        raw = self.profiler.ledger.raw()
        del raw["process_peak"]  # the one figure that no fake clock decides
        return raw


class Actor:
    """A thread that does one thing at a time, on request, while the caller waits."""

    def __init__(self, name: str = "actor-0") -> None:
        self._orders: queue.SimpleQueue[Callable[[], Any] | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while (order := self._orders.get()) is not None:
            try:
                self._answers.put((order(), None))
            except BaseException as error:
                self._answers.put((None, error))
            del order

    def do(self, order: Callable[[], Any]) -> Any:
        self._orders.put(order)
        answer, error = self._answers.get()
        if error is not None:
            raise error
        return answer

    def enter(self, span: Any) -> None:
        self.do(span.__enter__)

    def exit(self, span: Any) -> None:
        self.do(lambda: span.__exit__(None, None, None))

    def end(self) -> None:
        self._orders.put(None)
        self._thread.join()

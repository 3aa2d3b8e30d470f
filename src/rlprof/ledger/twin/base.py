"""The twin's state, its clock and its operations."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from rlprof.ledger.compiled import compiling
from rlprof.ledger.twin.attribution import Attribution
from rlprof.ledger.twin.collections import Collections
from rlprof.ledger.twin.cpu import CpuClock
from rlprof.ledger.twin.journal import Iterations, Timeline
from rlprof.ledger.twin.lanes import Lanes
from rlprof.ledger.twin.memory import DeviceSpans, ProcessMemory
from rlprof.ledger.twin.records import Operation, Thread
from rlprof.ledger.twin.span import Span
from rlprof.ledger.twin.stacks import Stacks
from rlprof.ledger.twin.watch import Watch

if TYPE_CHECKING:
    from rlprof.ledger.twin.ledger import Ledger

_MAX_OPERATIONS = 65536

Method = TypeVar("Method", bound=Callable[..., Any])


def locked(method: Method) -> Method:
    """Hold the ledger's lock. The C core has the GIL, but Python code may be interrupted between any two lines."""

    @wraps(method)
    def run(self: Base, *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            return method(self, *args, **kwargs)

    return run  # type: ignore[return-value]  # wraps keeps the signature


class Base:
    """State that all parts of the twin change, and the operations by name."""

    def __init__(self, hooks: Any, driver: int, clock: str = "auto", cpu: str = "auto") -> None:
        if clock == "tsc":
            raise ValueError("the TSC cannot be used here: the Python twin has no way to read it; use clock='auto'")
        if clock not in ("auto", "monotonic", "fake"):
            raise ValueError(f"clock is 'auto', 'monotonic', 'tsc' or 'fake', not {clock!r}")
        self.hooks = hooks
        self.driver = driver
        self.follows_tasks = False
        self.local = 0
        self.span_cost = 0  # only the C core uses it, to time a probe's work around a span
        self.learned = False
        self.trained = 0
        self._fake: int | None = 0 if clock == "fake" else None
        self._cpu = CpuClock(cpu, fake=clock == "fake")
        self._lock = threading.RLock()
        self.enabled = False
        self._started = self._wall = self._stopped = 0
        self._left_open = 0
        self._operations: dict[str, Operation] = {}
        self._attribution = Attribution(self._cpu)
        self._lanes = Lanes(hooks, self._attribution, self.time)
        self._timeline = Timeline()
        self._iterations = Iterations()
        self._memory = ProcessMemory()
        self._devices = DeviceSpans(hooks)
        self._watch = Watch(hooks)
        self._stacks = Stacks()
        self._collections = Collections()
        self._lanes.make_driver(driver)

    def now(self) -> int:
        return time.perf_counter_ns() if self._fake is None else self._fake

    def time(self) -> int:
        """The clock while recording; while not, the moment recording stopped."""
        return self.now() if self.enabled else self._stopped

    def _known(self) -> Thread | None:
        """The calling thread's record, if recording is on and it has recorded anything."""
        return self._lanes.known() if self.enabled else None

    def recorder(
        self,
        name: str,
        track_memory: bool = False,
        category: str | None = None,
        wait: bool = False,
        device: bool | None = None,
    ) -> Any:
        """Times a block ('with profile(name):') or a function ('@profile(name)')."""
        if compiling():
            return nullcontext()
        if not isinstance(name, str):
            raise TypeError(f"profile() takes the operation's name as a str, not {type(name).__name__}")
        if category is not None and not isinstance(category, str):
            raise TypeError(f"profile() takes a category as a str, not {type(category).__name__}")
        options = (bool(track_memory), bool(wait), None if device is None else bool(device))
        operation = self._operation(str(name), category)
        span = operation.spans.get(options)
        if span is None:
            span = operation.spans.setdefault(options, Span(cast("Ledger", self), operation, *options))
        return span

    def _operation(self, name: str, category: str | None) -> Operation:
        operation = self._operations.get(name)
        if operation is None:
            return self._new_operation(name, category)
        if category is not None and category != operation.category:
            if operation.category_given:
                self.hooks.warn("one operation is given two categories; the first one stays", None)
            else:
                operation.category, operation.on_device = self.hooks.classify(name, category)
                operation.category_given = True
        return operation

    @locked
    def _new_operation(self, name: str, category: str | None) -> Operation:
        if len(self._operations) >= _MAX_OPERATIONS - 1:
            self.hooks.warn("more than 65,535 operation names; further ones are counted as '(other names)'", None)
            name, category = "(other names)", None
            if name in self._operations:
                return self._operations[name]
        found, on_device = self.hooks.classify(name, category)
        operation = Operation(len(self._operations), name, found, on_device, category is not None)
        return self._operations.setdefault(name, operation)

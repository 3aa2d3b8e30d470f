"""Waits for threads, futures, queues, pipes and processes, and the tasks of worker pools.

Waits are timed on the driver, and on other threads while a span is open. A thread that waits without a span is idle,
like those of a pool or a progress bar. Nearly everything in Python's own modules blocks in `Condition.wait`, so that is
replaced, and its caller decides the operation.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from contextlib import suppress
from operator import attrgetter
from threading import get_ident
from time import process_time_ns
from types import CodeType, ModuleType
from typing import Any

from rlprof.ledger.catalogue import STARTUP
from rlprof.ledger.profiler import Profiler
from rlprof.probes.garbage import COLLECTOR, attach_collector
from rlprof.probes.patches import Patches
from rlprof.probes.pools import attach_executor, attach_pool
from rlprof.probes.probe import Probe

CALLERS = 4
"""Frames that are searched for the caller: as_completed waits for an event, which waits for a condition."""

NAMES: dict[str, dict[str, tuple[str, ...]]] = {
    "queue_wait": {"queue": ("Queue.get", "Queue.put", "Queue.join")},
    "future_wait": {
        "concurrent.futures._base": ("Future.result", "Future.exception", "wait", "as_completed"),
        "multiprocessing.pool": ("ApplyResult.wait", "IMapIterator.next"),
    },
}
"""By operation and module: the functions that call `Condition.wait`, directly or indirectly."""

BLOCKING = {
    "threading": {"Thread.join": "thread_wait"},
    "multiprocessing.connection": {"Connection._recv_bytes": "pipe_wait", "wait": "pipe_wait"},
    "multiprocessing.process": {"BaseProcess.join": "process_wait"},
    "subprocess": {"Popen.wait": "process_wait"},
}
"""By module: further functions that block, and their operations. A pipe's `recv` and `poll` call these two functions,
so unpickling is not part of the wait."""

EXECUTORS = ("concurrent.futures.process", "loky.process_executor", "joblib.externals.loky.process_executor")


class Waits:
    """Decides whether, and as which operation, a call that is about to wait is recorded."""

    def __init__(self, profiler: Profiler) -> None:
        self._profiler = profiler
        self._depth = profiler.ledger.depth
        self._spans = {name: profiler.profile(name, wait=True) for name in (*NAMES, "thread_wait")}
        self._known: dict[CodeType, str] = {}

    def matter(self) -> bool:
        """True if the wait is recorded."""
        return get_ident() == self._profiler.driver or self._depth() > 0

    def around(self, function: Callable[..., Any], span: Any) -> Callable[..., Any]:
        matter, profiler = self.matter, self._profiler

        def wait(*args: Any, **kwargs: Any) -> Any:
            if not matter():
                return function(*args, **kwargs)
            before = process_time_ns()
            with span:
                try:
                    return function(*args, **kwargs)
                finally:
                    if get_ident() == profiler.driver:
                        profiler.wait_cpu_ns += process_time_ns() - before
                        profiler.driver_waits += 1

        return wait

    def sleep(self, function: Callable[..., Any], span: Any) -> Callable[..., Any]:
        """A driver that sleeps outside all spans waits for others. Inside a span, the sleep is part of its work."""
        open_operations, profiler = self._profiler.ledger.open_operations, self._profiler

        def sleep(*args: Any, **kwargs: Any) -> Any:
            if get_ident() != profiler.driver or open_operations() not in ([], [STARTUP]):
                return function(*args, **kwargs)
            with span:
                return function(*args, **kwargs)

        return sleep

    def condition(self, function: Callable[..., Any], _span: Any) -> Callable[..., Any]:
        known = {name: self.around(function, span) for name, span in self._spans.items()}
        matter = self.matter

        def wait(*args: Any, **kwargs: Any) -> Any:
            return known[self._caller()](*args, **kwargs) if matter() else function(*args, **kwargs)

        return wait

    def know(self, module: ModuleType) -> None:
        """Remember the functions of this module that decide the operation of a wait."""
        for operation, modules in NAMES.items():
            for path in modules.get(module.__name__, ()):
                with suppress(AttributeError):  # other versions of Python may lack the function
                    self._known[attrgetter(path)(module).__code__] = operation

    def _caller(self) -> str:
        frame = sys._getframe(2)
        for _ in range(CALLERS):
            if frame is None:
                break
            if frame.f_code in self._known:
                return self._known[frame.f_code]
            frame = frame.f_back  # type: ignore[assignment]  # None at the outermost
        return "thread_wait"


_waits: weakref.WeakKeyDictionary[Patches, Waits] = weakref.WeakKeyDictionary()


def _waits_of(patches: Patches) -> Waits:
    if patches not in _waits:
        _waits[patches] = Waits(patches.profiler)
    return _waits[patches]


def _attach(module: ModuleType, patches: Patches) -> None:
    waits = _waits_of(patches)
    waits.know(module)
    for path, operation in BLOCKING.get(module.__name__, {}).items():
        owner, _, attribute = path.rpartition(".")
        patches.around(attrgetter(owner)(module) if owner else module, attribute, operation, waits.around, wait=True)


def _attach_threads(threading: ModuleType, patches: Patches) -> None:
    _attach(threading, patches)
    patches.around(threading.Condition, "wait", "thread_wait", _waits_of(patches).condition, wait=True)


def _attach_sleep(time: ModuleType, patches: Patches) -> None:
    patches.around(time, "sleep", "sleep", _waits_of(patches).sleep, wait=True)


def _attach_pool(pool: ModuleType, patches: Patches) -> None:
    _attach(pool, patches)
    attach_pool(pool, patches)


PROBE = Probe(
    "",
    {
        **dict.fromkeys((*BLOCKING, "queue", "concurrent.futures._base"), _attach),
        "threading": _attach_threads,
        "time": _attach_sleep,
        "multiprocessing.pool": _attach_pool,
        COLLECTOR: attach_collector,
        **dict.fromkeys(EXECUTORS, attach_executor),
    },
    generic=True,
)

"""The profiler: a ledger with a start, a stop and a snapshot."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any, overload

from rlprof.ledger import tasks, twin
from rlprof.ledger.calibration import measure_span_cost
from rlprof.ledger.device import Device, find_device
from rlprof.ledger.hooks import Hooks
from rlprof.ledger.snapshot import Snapshot, SpanCost, build_snapshot

try:
    from rlprof.ledger import _core
except ImportError:  # no compiler at install time, or not the process's first interpreter
    _core = None  # type: ignore[assignment]  # the twin serves


class Iteration:
    """What `Profiler.iteration()` returns. As a context manager it ends the iteration at the end of the block."""

    def __init__(self, ledger: Any, index: int) -> None:
        self._ledger = ledger
        self.index = index

    def __enter__(self) -> Iteration:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ledger.iteration(True)


class Profiler:
    """Records spans and accounts for every nanosecond of the driver's wall time. Off until `enable()`.

    core: "c", "python" (the twin), or "auto": C where it was built. The environment variable RLPROF_CORE overrides it.
    clock: "monotonic", "tsc", or "auto": the TSC where it is safe.
    cpu: how thread CPU time is read: "auto" (only where it is nearly free), "syscall" (anywhere, about 1 us a span) or
    "off".
    """

    def __init__(self, core: str = "auto", clock: str = "auto", cpu: str = "auto") -> None:
        core = os.environ.get("RLPROF_CORE", core)
        if core not in ("auto", "c", "python"):
            raise ValueError(f"core is 'auto', 'c' or 'python', not {core!r}")
        if core == "c" and _core is None:
            raise RuntimeError("rlprof's C core is not built here; use core='auto', or install a C compiler and rlprof again")
        self._module: Any = twin if core == "python" or _core is None else _core
        self._clock = clock
        self._cpu = cpu
        self._ledger = self._new_ledger(threading.main_thread().ident or 0)
        self._cost: SpanCost | None = None
        self._device: Device | None = None
        self.profile: Callable[..., Any] = self._ledger.recorder
        _profilers.add(self)

    def _new_ledger(self, driver: int) -> Any:
        hooks = Hooks(self._module.Timed)
        ledger = self._module.Ledger(hooks, driver, self._clock, self._cpu)
        hooks.ledger = ledger
        return ledger

    @property
    def core(self) -> str:
        """"c" or "python"."""
        return "python" if self._module is twin else "c"

    @property
    def enabled(self) -> bool:
        return bool(self._ledger.enabled)

    def enable(self, timeline: int | None = None) -> None:
        """Begin, or go on, recording. `timeline` keeps the last so many spans as events, 24 bytes each."""
        if timeline is not None:
            self._ledger.timeline(timeline)
        self._attach_device()
        if self._cost is None:
            self._cost = self._measure_cost()
        self._ledger.start()

    def disable(self) -> None:
        """Stop recording; what was recorded stays, and spans that are open end here as far as it is concerned."""
        self._ledger.stop()
        tasks.unfollow(self._ledger)

    def reset(self) -> None:
        """Forget what was recorded. Spans that are open count from here."""
        self._ledger.reset()

    def drive(self) -> None:
        """Make the calling thread the driver: the one whose progress is the training's. Without it, the main thread."""
        self._ledger.set_driver()

    def iteration(self) -> Iteration:
        """One turn of collect-and-update begins, and the one before ends. Also works as `with profiler.iteration():`."""
        self._attach_device()
        return Iteration(self._ledger, self._ledger.iteration(False))

    def snapshot(self) -> Snapshot:
        """Everything recorded so far, spans that are open included up to now."""
        self._attach_device()
        return build_snapshot(self._ledger.raw(), self._cost or SpanCost())

    def use_device(self, device: Device | None) -> None:
        """Time device spans with this device. Without it, CUDA is found by itself once torch uses it."""
        self._device = device
        self._ledger.set_device(device)

    def drain_timeline(self) -> tuple[bytes, int]:
        """The events since the last drain, packed (int64 start, int64 duration, uint32 node, uint32 depth), and how
        many were overwritten unread."""
        events, lost = self._ledger.drain_timeline()
        return events, lost

    def drain_iterations(self) -> tuple[bytes, bytes]:
        """Iteration marks and rows since the last drain, packed as the core's iteration.c says."""
        marks, rows = self._ledger.drain_iterations()
        return marks, rows

    @overload
    def profile_function(self, name: Callable[..., Any], /) -> Any: ...
    @overload
    def profile_function(self, name: str | None = None, **options: Any) -> Callable[[Any], Any]: ...
    def profile_function(self, name: Any = None, **options: Any) -> Any:
        """Time every call of a function, method, coroutine or generator: `@profile_function("name")`.

        Without a name, the function's own. Options are those of `profile`.
        """
        if callable(name):
            return self.profile_function()(name)
        if name is not None:
            return self.profile(name, **options)

        def decorator(function: Any) -> Any:
            inner = function.__func__ if isinstance(function, (staticmethod, classmethod)) else function
            return self.profile(getattr(inner, "__name__", "function"), **options)(function)

        return decorator

    def _attach_device(self) -> None:
        if self._device is None:
            device = find_device()
            if device is not None:
                self.use_device(device)

    def _measure_cost(self) -> SpanCost:
        if self._clock == "fake":
            return SpanCost()
        return measure_span_cost(lambda: self._new_ledger(threading.get_ident()))

    def _after_fork(self) -> None:
        self._device = None
        tasks.unfollow(self._ledger)
        self._ledger.after_fork()


_profilers: weakref.WeakSet[Profiler] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for profiler in list(_profilers):
        profiler._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)

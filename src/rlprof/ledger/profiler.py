"""The profiler: a ledger with a start, a stop and a snapshot."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from math import inf
from time import monotonic
from types import TracebackType
from typing import Any, overload

from rlprof.ledger.calibration import measure_span_cost, measure_step_cost
from rlprof.ledger.decorate import decorate
from rlprof.ledger.device import Device, find_device
from rlprof.ledger.hooks import Hooks
from rlprof.ledger.interface import F, Ledger, Recorder, Recording
from rlprof.ledger.native import say_missing
from rlprof.ledger.sharing import give_back, given_away
from rlprof.ledger.snapshot import Snapshot, SpanCost, build_snapshot

try:
    from rlprof.ledger import _core
except ImportError:  # no compiler at install time, or not the process's first interpreter
    _core = None  # type: ignore[assignment]  # the twin serves


class Iteration:
    """Returned by `Profiler.iteration()`. As a context manager it ends the iteration at the end of the block."""

    def __init__(self, ledger: Ledger, index: int) -> None:
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

    core: "c", "python" (the twin), or "auto": C where it was built.
    clock: "monotonic", "tsc", or "auto": the TSC where it is safe.
    cpu: how thread CPU time is read: "auto" (only where it is nearly free), "syscall" (anywhere, about 2 us per span)
    or "off".
    RLPROF_CORE, RLPROF_CLOCK and RLPROF_CPU in the environment replace "auto".
    """

    def __init__(self, core: str = "auto", clock: str = "auto", cpu: str = "auto") -> None:
        core, self._clock, self._cpu = (
            os.environ.get(f"RLPROF_{name}", "auto") if chosen == "auto" else chosen
            for name, chosen in (("CORE", core), ("CLOCK", clock), ("CPU", cpu))
        )
        self._wants_core = core == "auto"
        if core not in ("auto", "c", "python"):
            raise ValueError(f"core is 'auto', 'c' or 'python', not {core!r}")
        if core == "c" and _core is None:
            raise RuntimeError(
                "rlprof's C core is not built here; use core='auto', or install a C compiler and rlprof again"
            )
        self._module: Any = _core if core != "python" and _core is not None else _twin()
        self.timed_type: type[Any] = self._module.Timed
        """Type of the callable that times a function's calls: see `rlprof.ledger._core.Timed`."""
        self._hooks = Hooks(self.timed_type)
        self._records = self._new_ledger(self._hooks, threading.main_thread().ident or 0)
        self.ledger: Ledger = self._records
        """The core's records, for the parts of rlprof that need more than the methods here."""
        self._hooks.measure_step_cost = self._measure_step_cost
        # A builtin method is pickled as getattr(owner, name), a Python method with the very object it belongs to.
        self._hooks.reduce = (lambda: (_ledger_of, (self,))) if self.core == "python" else self.__reduce__
        self.span_costs: list[SpanCost] = []
        """Cost of a span, as measured from time to time."""
        self._cost_measured = -inf
        self.resets = 0
        """Number of calls of `reset`."""
        self.recording: Recording | None = None
        """The recording that writes to a session, if there is one."""
        self.wait_cpu_ns = 0
        """CPU time of the whole process during those waits of the driver that a probe times."""
        self.driver_waits = 0
        """Number of these waits."""
        self.samples_stacks = True
        """False: the Python stack is not sampled while a session is recorded."""
        self.marked = False
        """True once the program has marked an iteration in this process."""
        self._listeners: list[Callable[[str], None]] = []
        self.planned: dict[str, int] = {}
        """Planned number of events of each kind in this run, if known."""
        self._device: Device | None = None
        self.profile: Recorder = self._records.recorder
        """Time an operation: see `Recorder`. The core's own function, as a method here would double a span's cost."""
        self.add_steps: Callable[[int], None] = self.ledger.add_steps
        """Count environment steps: `profiler.add_steps(len(envs))` after each step of a vector."""
        self.add_episodes: Callable[[int], None] = self.ledger.add_episodes
        """Count episodes that ended."""
        _profilers.add(self)

    def _new_ledger(self, hooks: Hooks, driver: int) -> Any:
        hooks.ledger = self._module.Ledger(hooks, driver, self._clock, self._cpu)
        return hooks.ledger

    def __reduce__(self) -> tuple[Any, ...]:
        """Unpickled, this is the profiler of that process. A profiler that the program made becomes a new one."""
        if self is _profiler:
            return get_profiler, ()
        return Profiler, (self.core, self._clock, self._cpu)

    def __copy__(self) -> Profiler:
        return self

    def __deepcopy__(self, _memo: Any) -> Profiler:
        return self

    @property
    def core(self) -> str:
        """ "c" or "python"."""
        return "c" if self._module is _core else "python"

    @property
    def enabled(self) -> bool:
        return bool(self._records.enabled)

    def enable(self, timeline: int | None = None) -> None:
        """Begin or continue recording. `timeline` keeps the last so many spans as events, 24 bytes each."""
        if _core is None and self._wants_core:
            say_missing("rlprof.ledger._core", "the C core", "Its Python twin costs about 100 times as much per span.")
        if timeline is not None:
            self._records.timeline(timeline)
        self._attach_device()
        if not self.span_costs:
            self._measure_cost()
        self.resume()

    def resume(self) -> None:
        """Record from here on, without the measurements of `enable`. Workers use those of the driver."""
        self._hooks.resume_tasks()
        self._records.start()

    def disable(self) -> None:
        """Stop recording and keep the records. The open iteration ends."""
        if self.enabled:
            self._records.stop()
            self._hooks.forget_tasks()
            self._measure_cost()

    def reset(self) -> None:
        """Forget the records. Open spans count from here."""
        self.resets += 1
        self.wait_cpu_ns = 0
        self._records.reset()

    @property
    def driver(self) -> int:
        """The thread that drives the training; 0 in a forked child, whose parent may drive it."""
        return int(self.ledger.driver)

    @driver.setter
    def driver(self, ident: int) -> None:
        self.ledger.driver = ident

    @property
    def leader(self) -> int:
        """The thread that may train in this process: the driver, or the main thread of a worker."""
        return self.driver or int(self.ledger.local)

    def drive(self) -> None:
        """Make the calling thread the driver, whose progress is the training's (default: the main thread)."""
        self.driver = threading.get_ident()
        self._records.set_driver()

    def iteration(self) -> Iteration:
        """Begin an iteration of collecting and updating, and end the last one. Or: `with profiler.iteration():`."""
        self._attach_device()
        self.marked = True
        begun = Iteration(self.ledger, self.ledger.iteration(False))
        self.announce("iteration")
        return begun

    def epoch(self) -> None:
        """An epoch of the training begins: for captures whose steps are epochs, where no probe sees them."""
        self.announce("epoch")

    def end_step(self) -> None:
        """A step of the program ends, and the next begins: for captures whose steps are marks."""
        self.announce("mark")

    def listen(self, listener: Callable[[str], None]) -> Callable[[], None]:
        """Call `listener` at each `iteration`, `epoch` and `mark` that begins, and with `plan` once a plan is known.

        Returns a function that ends this.
        """
        self._listeners.append(listener)

        def end() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return end

    def announce(self, what: str) -> None:
        """Report an `iteration`, `epoch` or `mark` that begins to all listeners."""
        if not self._listeners:
            return
        own = self.ledger.own_time(False)  # listeners that take long have spans of their own
        for listener in tuple(self._listeners):
            try:
                listener(what)
            except Exception as error:
                self._hooks.warn("a listener for iterations and epochs has failed", error)
        self.ledger.own_time(own)

    def warn(self, what: str, cause: BaseException | None = None) -> None:
        """Warn once that something in rlprof failed. Never raises: the training goes on."""
        self._hooks.warn(what, cause, stacklevel=4)

    def at_first_span(self, function: Callable[[], None] | None) -> None:
        """Call a function when this process records its first span; None: call none."""
        self._hooks.at_first_span = function

    @property
    def clock_rate(self) -> str:
        """Value of RLPROF_TSC for child processes, which then need not measure the clock; empty: none."""
        return str(self._module.tsc_rate()) if self.core == "c" else ""

    def plan(self, **planned: int) -> None:
        """Set how many steps of each kind the run will have (`iteration=100, epoch=400`). A capture that would not
        reach its end then warns at once."""
        self.planned = planned
        self.announce("plan")

    def snapshot(self) -> Snapshot:
        """Everything recorded so far. Open spans count up to now."""
        self._attach_device()
        own = self.ledger.own_time(True)
        try:
            raw = self.ledger.raw()
            raw["nodes"] = give_back(raw, given_away(raw))
            return build_snapshot(raw, SpanCost.over(self.span_costs))
        finally:
            self.ledger.own_time(own)

    def use_device(self, device: Device | None) -> None:
        """Time device spans with this device (default: CUDA, once torch uses it)."""
        self._device = device
        self._records.set_device(device)

    def sample_stacks(self, period_ns: int) -> None:
        """Sample the driver's Python stack about this often, unless that is switched off; 0 ends it."""
        if self.samples_stacks or not period_ns:
            self.ledger.stacks(period_ns, threading.main_thread().ident or 0)

    @property
    def ticks_by_hand(self) -> bool:
        """True if only `Ledger.stack_tick` samples the stack: on the Python twin, and where the driver is not the main
        thread."""
        return self.samples_stacks and (self.core == "python" or self.driver != threading.main_thread().ident)

    def drain_timeline(self) -> tuple[bytes, int]:
        """Packed events since the last drain (`rlprof.ledger.rows.EVENT`), and how many were overwritten unread."""
        events: tuple[bytes, int] = self._records.drain_timeline()
        return events

    def drain_iterations(self) -> tuple[bytes, bytes]:
        """Packed marks and gains of iterations since the last drain: `rlprof.ledger.rows.MARK` and `GAIN`."""
        drained: tuple[bytes, bytes] = self._records.drain_iterations()
        return drained

    @overload
    def profile_function(self, name: F, /) -> F: ...
    @overload
    def profile_function(
        self,
        name: str | None = None,
        track_memory: bool = False,
        category: str | None = None,
        wait: bool = False,
        device: bool | None = None,
    ) -> Callable[[F], F]: ...
    def profile_function(self, name: Any = None, *arguments: Any, **options: Any) -> Any:
        """Time every call of a function, method, coroutine or generator: `@profile_function("name")`.

        name: the operation (default: the function's name).
        Options are those of `profile`.
        """
        if callable(name):
            return self.profile_function()(name)
        if name is not None:
            return self.profile(name, *arguments, **options)

        def decorator(function: Any) -> Any:
            inner = function.__func__ if isinstance(function, (staticmethod, classmethod)) else function
            return self.profile(getattr(inner, "__name__", "function"), *arguments, **options)(function)

        return decorator

    def time_function(self, function: Any, name: str, *, outermost: bool = False, **options: Any) -> Any:
        """The function with its calls timed, for a probe to put in its place.

        outermost: do not time a call inside a span of the same operation, as when one wrapper's step calls the next.
        """
        return decorate(self.profile(name, **options), function, self.profile, self.timed_type, outermost)

    def _attach_device(self) -> None:
        if self._device is None:
            device = find_device()
            if device is not None:
                self.use_device(device)

    def _measure_cost(self) -> None:
        """Measure at start and stop, at most once per second: a machine's speed changes."""
        now = monotonic()
        if self._clock != "fake" and now > self._cost_measured + 1:
            self._cost_measured = now
            self.span_costs.append(self.measure_span_cost())
            del self.span_costs[1:-7]
            self._records.span_cost = round(self.span_costs[-1].outside_ns)

    def measure_span_cost(self) -> SpanCost:
        """Cost of a span in this process, now."""
        return measure_span_cost(self._scratch_ledger)

    def _measure_step_cost(self) -> int:
        return 0 if self._clock == "fake" else measure_step_cost(self._scratch_ledger)

    def _scratch_ledger(self) -> Any:
        return self._new_ledger(Hooks(self.timed_type), threading.get_ident())

    def _after_fork(self) -> None:
        self._device = None
        self.driver = 0
        self.marked = False
        self._listeners.clear()
        self._hooks.forget_tasks()
        self._records.after_fork()


def _twin() -> Any:
    from rlprof.ledger import twin  # noqa: PLC0415 - not needed where the C core was built

    return twin


def _ledger_of(profiler: Profiler) -> Ledger:
    return profiler.ledger


_profilers: weakref.WeakSet[Profiler] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for profiler in list(_profilers):
        profiler._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)

_profiler = Profiler()


def get_profiler() -> Profiler:
    """The process's profiler, which `rlprof.profile` and `rlprof.profile_function` record to."""
    return _profiler

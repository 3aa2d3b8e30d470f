"""The typed interface of the ledger: what a core provides, in C or in Python, and what the rest of rlprof may use.

Other folders reach a core through `Profiler.ledger` and `Profiler.timed_type` only. Types are checked against both
cores; what each method does is tested in tests/ledger, on both.
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, TypeVar

from rlprof.ledger.device import Device

F = TypeVar("F", bound=Callable[..., Any])

Watcher = Callable[[str, bool], None]
"""Called on the thread of each span, with the operation's name and True where the span begins, False where it ends."""


class Span(Protocol):
    """A timed operation. Use it as a context manager, or as a decorator of functions, coroutines and generators."""

    @property
    def name(self) -> str:
        """Name of the operation."""

    @property
    def arguments(self) -> tuple[str, bool, None, bool, bool | None]:
        """Positional arguments with which `profile` returns this span."""

    def __enter__(self) -> Span: ...
    def __exit__(self, *exception: Any) -> None: ...
    def __call__(self, function: F, /) -> F: ...


class Recorder(Protocol):
    """The type of `profile`."""

    def __call__(
        self,
        name: str,
        track_memory: bool = False,
        category: str | None = None,
        wait: bool = False,
        device: bool | None = None,
    ) -> Span:
        """Time an operation: `with profile("env_step"): ...`, or `@profile("env_step")` on a function.

        name: the operation. All spans of one name are one account.
        track_memory: measure the peak of the process's memory inside the span (a few microseconds per span).
        category: one of `rlprof.ledger.catalogue.CATEGORIES` (default: the catalogue's, `other` for unknown names).
        wait: the operation only waits for others, who are accountable for its time.
        device: time the operation on the GPU, too (default: where its category usually runs there).
        """


class Ledger(Protocol):
    """The records of one profiler: call trees of every lane, and the accounts."""

    driver: int
    """Thread that drives the training in this process; 0: none."""
    local: int
    """In a worker process: the thread that may train by itself."""
    follows_tasks: bool
    """True while asyncio's event loops report their callbacks."""

    @property
    def enabled(self) -> bool:
        """True while spans are recorded."""

    @property
    def steps(self) -> int:
        """Environment steps counted since the last reset."""

    @property
    def recorder(self) -> Recorder:
        """The function behind `Profiler.profile`."""

    # ---- recording ----

    def start(self) -> None:
        """Begin or continue recording."""

    def stop(self) -> None:
        """Stop recording and keep the records."""

    def reset(self) -> None:
        """Forget the records. Open spans count from here."""

    def after_fork(self) -> None:
        """Begin anew in a forked child."""

    def set_driver(self) -> None:
        """Make the calling thread the driver."""

    def now(self) -> int:
        """The ledger's clock, in ns."""

    def set_time(self, wall_ns: int, cpu_ns: int, /) -> None:
        """Set the fake clock of a test."""

    def raw(self) -> dict[str, Any]:
        """All records as plain data. Rows of nodes, lanes and operations have the columns of `rlprof.ledger.rows`."""

    def set_device(self, device: Device | None, /) -> None:
        """Time device spans with this device."""

    # ---- iterations, steps and the timeline ----

    def iteration(self, closes: bool, /) -> int:
        """End the open iteration. Begin the next one unless `closes`; returns the number of the one that begins."""

    def drop_iteration(self) -> None:
        """Discard the open iteration: nothing was learned in it."""

    def add_steps(self, number: int, /) -> None:
        """Count environment steps."""

    def add_episodes(self, number: int, /) -> None:
        """Count episodes that ended."""

    def drain_iterations(self) -> tuple[bytes, bytes]:
        """Packed marks and gains since the last drain: `rows.MARK` and `rows.GAIN`."""

    def timeline(self, capacity: int, /) -> None:
        """Keep the last `capacity` ended spans as events; 0 switches the timeline off."""

    def drain_timeline(self) -> tuple[bytes, int]:
        """Packed events since the last drain (`rows.EVENT`), and how many were overwritten before."""

    # ---- probes ----

    def depth(self) -> int:
        """Number of open spans on the calling thread's lane."""

    def open_operations(self) -> list[str]:
        """Names of the open spans on the calling thread's lane, outermost first."""

    def begin_startup(self, span: Span, /) -> None:
        """On the driver: open a span that ends where the training begins."""

    def end_startup(self) -> None:
        """The training begins. Only the first call has an effect."""

    def split(self, outer: Span, rest: Span, /) -> int:
        """End an open span where its last inner span ended, and book the time since to `rest`.

        Returns that time in ns; negative where the span is not open.
        """

    def rename(self, was: Span, name: Span, /) -> bool:
        """Book to `name` the driver's spans that were recorded as `was` since the last iteration mark."""

    def own_time(self, own: bool, /) -> bool:
        """From here on the calling thread does rlprof's own work, or no longer does. Returns the state before."""

    # ---- captures ----

    def watch(self, watcher: Watcher | None, /) -> None:
        """Report the begin and end of every span. Spans cost more meanwhile."""

    # ---- experiments: operations that are slowed down by a known amount; C core only ----

    def slow_down(self, memory: Any, names: tuple[str, ...], /) -> None:
        """Slow these operations down as the shared memory says."""

    def sample(self, name: str, ns: int, /) -> tuple[int, int]:
        """Hold the GIL for so long. Returns thread time inside the operation, and CPU time that these threads got."""

    # ---- processes that work for one training; C core only ----

    def share(self, path: str | PathLike[str], create: bool, /) -> None:
        """Share the clocks with other processes through a file."""

    def leave(self) -> None:
        """Stop sharing the clocks."""

    def members(self) -> list[int]:
        """Process ids of the processes that share the clocks."""

    def ended(self) -> list[int]:
        """Process ids of those members that no longer run."""

    def dismiss(self, pid: int, /) -> None:
        """Remove a member that has ended."""

    def ask(self, seconds: float, /) -> bool:
        """Request the members' records and wait at most so long. True where all have answered."""

    def listen(self, seconds: float, /) -> int | None:
        """In a member: wait for a request. Returns the driver's epoch, -1 where the driver is gone, None after
        `seconds` without a request."""

    def answer(self) -> None:
        """In a member: confirm that the requested records are written."""

    # ---- what the profiler itself uses ----

    def follow(self, run: Callable[[Any], None], /) -> Callable[[Any], None]:
        """Wrap `asyncio.Handle._run` so that the ledger follows every callback."""

    def set_step_cost(self, ns: int, /) -> None:
        """Cost of following one callback, besides what is timed."""

    def set_span_cost(self, ns: int, /) -> None:
        """Cost of a span outside of its two clock readings."""

    def pulse(self, span: Span | None, /) -> None:
        """Book to this span the time while the whole process is stopped; None ends that."""

    def stopped(self, span: Span, start: int, end: int, /) -> None:
        """The process was stopped between these two times."""


class Recording(Protocol):
    """The recording under way, as captures and probes see it."""

    name: str
    folder: Path | None
    """Folder of the session; None where none could be made."""

    def mark(self, kind: str, text: str) -> None:
        """Note an event in the session."""

    def add_file(self, path: Path, kind: str) -> None:
        """List a file that belongs to the session."""

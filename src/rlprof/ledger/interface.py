"""What the rest of rlprof may use of a core, in C or in Python, besides the methods of `Profiler`.

Other folders reach a core through `Profiler.ledger` and `Profiler.timed_type` only.
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any, Protocol, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class Span(Protocol):
    """A timed operation. Use it as a context manager, or as a decorator of functions, coroutines and generators."""

    @property
    def name(self) -> str:
        """Name of the operation."""

    def __enter__(self) -> Span: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...
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
        wait: the operation only waits for others, which get its time.
        device: time the operation on the GPU, too (default: if its category usually runs there).
        """


class Ledger(Protocol):
    """The records of one profiler: call trees of every lane, and the accounts."""

    driver: int
    """Thread that drives the training in this process; 0: none."""
    local: int
    """In a worker process: the thread that may train by itself."""

    @property
    def steps(self) -> int:
        """Environment steps counted since the last reset."""

    # ---- recording ----

    def start(self) -> None:
        """Begin or continue recording."""

    def stop(self) -> None:
        """Stop recording and keep the records."""

    def set_time(self, wall_ns: int, cpu_ns: int, /) -> None:
        """Set the fake clock."""

    def pulse(self, span: Span | None, /) -> None:
        """Book to this span the time while the whole process is stopped; None ends that."""

    def now(self) -> int:
        """The ledger's clock, in ns."""

    def raw(self) -> dict[str, Any]:
        """All records as plain data. Rows of nodes, lanes and operations have the columns of `rlprof.ledger.rows`."""

    # ---- iterations and steps ----

    def iteration(self, closes: bool, /) -> int:
        """End the open iteration. Begin the next one unless `closes`; returns the number of the one that begins."""

    def drop_iteration(self) -> None:
        """Discard the open iteration: nothing was learned in it."""

    def add_steps(self, number: int, /) -> None:
        """Count environment steps."""

    def add_episodes(self, number: int, /) -> None:
        """Count episodes that ended."""

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

        Returns that time in ns; negative if the span is not the innermost one.
        """

    def rename(self, was: Span, name: Span, /) -> bool:
        """Book to `name` the driver's spans that were recorded as `was`. False: one is open, or there is none."""

    def own_time(self, own: bool, /) -> bool:
        """Begin or end rlprof's own work on the calling thread. Returns the state before."""

    # ---- samples of the Python stack: rlprof.ledger.stacks adds them up ----

    def stacks(self, period_ns: int, main: int, /) -> None:
        """Sample the stack of the driver about this often, if it is the main thread; 0 ends that.

        Neither the twin nor a ledger with a fake clock samples by itself: call `stack_tick`.
        """

    def stack_tick(self) -> bool:
        """Sample the driver's stack now, from any thread. False: there is no driver, or sampling is off."""

    def drain_stacks(self) -> tuple[list[tuple[Any, ...]], list[tuple[CodeType, int]], int, int]:
        """Records and new lines since the last drain, ns lost, and CPU ns of the thread that samples.

        A sample is (time, node, ns, change of memory, numbers of lines, outermost first). A move of samples to another
        node is (since, from, to), where -1 stands for all nodes or for none.
        """

    # ---- Python's garbage collector ----

    def collected(self, phase: str, info: dict[str, int], /) -> None:
        """For gc.callbacks: time a run of the garbage collector."""

    def collections(self) -> list[tuple[int, int, int, int, int]]:
        """For each generation: runs, ns, the longest run, objects freed, all since the training began; ns before."""

    # ---- captures ----

    def watch(self, watcher: Callable[[str, bool], None] | None, /) -> None:
        """Call `watcher` on the thread of each span, with the operation's name, and True if it begins. Spans cost more
        meanwhile."""

    # ---- experiments: operations that are slowed down by a known amount; C core only ----

    def slow_down(self, memory: Any, names: tuple[str, ...], /) -> None:
        """Slow these operations down by the fractions in the shared memory."""

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

    def request(self, seconds: float, /) -> bool:
        """Request the members' records and wait at most so long. True if all have answered."""

    def listen(self, seconds: float, /) -> int | None:
        """In a member: wait for a request. Returns the driver's epoch; -1 if the driver is gone; None without
        a request."""

    def answer(self) -> None:
        """In a member: confirm that the requested records are written."""


class Recording(Protocol):
    """The recording under way, as captures and probes see it."""

    name: str
    folder: Path | None
    """Folder of the session; None if it could not be made."""

    def mark(self, kind: str, text: str) -> None:
        """Note an event in the session."""

    def add_file(self, path: Path, kind: str) -> None:
        """List a file that belongs to the session."""

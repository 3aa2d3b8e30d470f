"""A training being recorded: a thread that flushes the ledger to a session about once a second."""

from __future__ import annotations

import errno
import os
import random
import resource
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from rlprof.ledger.catalogue import SUSPENDED
from rlprof.ledger.profiler import Profiler
from rlprof.ledger.stacks import DRIVER_PERIOD, ELSEWHERE_PERIOD
from rlprof.recording import environment, exits
from rlprof.recording.background import Background
from rlprof.recording.flush import SessionFlusher, Watcher
from rlprof.recording.requests import Requests
from rlprof.recording.worker import leave
from rlprof.session.folder import new_folder
from rlprof.session.records import Verdict

FLUSH_SECONDS = 1.0
DESCRIPTORS = 24
"""File descriptors that must be free: about ten for the session, the samples and the workers, the rest for the
program."""

END_SECONDS = 8.0
"""Time for the end of a run. A process that gets SIGTERM often has ten seconds before it is killed."""

BLANK_SECONDS = 5.0
"""A program under `rlprof run` that exits earlier, before anything was recorded, leaves no session."""

JOIN_SECONDS = 6.0
"""How long the end of a run waits for a flush under way. A disk may hang, but the training must not."""


class Recording:
    """One recorded run. `record` makes it. Use it as a context manager, or let the end of the process end it.

    A recording knows neither reports nor captures: whoever starts it adds them to `watchers`, `before_end`, `at_end`,
    `on_request` and `if_unwritten`.
    """

    def __init__(self, profiler: Profiler, name: str, parent: Path, settings: Mapping[str, Any]) -> None:
        self.profiler = profiler
        self.name = name
        self.folder: Path | None = None
        """Folder of the session; None if it could not be created."""
        self.watchers: list[Watcher] = []
        """Called after each flush."""
        self.before_end: list[Callable[[], None]] = []
        """Called at the end of the run, while everything is still recorded."""
        self.at_end: list[Callable[[Path], None]] = []
        """Called with the folder once the session is complete."""
        self.on_request: Callable[[Path], None] | None = None
        """Called on the flushing thread with the file in which `rlprof capture` requests a trace. It removes the file
        when the capture begins."""
        self.if_unwritten: Callable[[], None] | None = None
        """Called at the end of a run that could write no session."""
        self.if_blank: Callable[[], None] | None = None
        """Called instead of `at_end` if the session was deleted, because nothing was recorded."""
        self.flat_folders: list[Path] = []
        """Further folders for raw.json and summary.txt, in the flat layout."""
        self.verdict = Verdict()
        """Filled in at the end."""
        self.deadline = 0.0
        """Value of time.monotonic() by which the end of the run should be over."""
        self.quiet = False
        """Print nothing at the end."""
        self.launched = False
        """Started by `rlprof run`, and not yet taken over by a `record()` in the program."""
        self.left_early = False
        """An exit or an exception ended the program, and not its last line."""
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._holder = 0
        """The thread that is flushing at this moment."""
        self._stop_after_flush: str | None = None
        self._wake = threading.Event()
        self._random = random.Random()  # not the program's numbers
        self._thread: Background | None = None
        self._flusher: SessionFlusher | None = None
        self._requests: Requests | None = None
        self.ending = False
        self.ended = False
        other = profiler.recording
        if other is not None:
            self.warn(f"the profiler is already recorded to {other.folder}. The second recording writes nothing", None)
            return
        profiler.recording = self
        leave(profiler)  # a worker process that records a session of its own is no worker any more
        try:
            _check_descriptors()
            self.folder = new_folder(name, parent)
            self._flusher = SessionFlusher(profiler, self.folder, name, settings, self.watchers)
            self._requests = Requests(self.folder, self.mark, self.warn)
        except Exception as error:
            self.warn(
                f"no session can be written in {parent}. The training goes on, and is recorded in memory only", error
            )

    def start(self, timeline: int | None = None, stacks: bool = True) -> None:
        """Begin recording and flushing."""
        self.profiler.samples_stacks = stacks and environment.samples_stacks(os.environ)
        if not self.profiler.enabled:
            self.profiler.reset()  # what was recorded before is not part of this run
        try:
            self.profiler.enable(timeline)
        except Exception as error:
            self.warn(f"a timeline of {timeline!r} spans cannot be kept", error)
            self.profiler.enable()
        if self.profiler.recording is not self:
            return
        exits.watch(self)
        self.profiler.ledger.pulse(self.profiler.profile(SUSPENDED))
        if self._flusher is not None:
            self._flusher.share()
            self.profiler.sample_stacks(DRIVER_PERIOD)
            self.flush()  # a run that is killed at once leaves a session that shows so
            try:
                self._thread = Background(self._run)
            except RuntimeError as error:
                self.warn("no thread can be started. The session is written at the end only", error)

    def take_over(self, name: str | None, settings: Mapping[str, Any], timeline: int | None) -> None:
        """The program under `rlprof run` calls `record()` itself: that call gets this recording."""
        self.launched = False
        try:
            with self._lock:
                if self._flusher is not None:
                    self._flusher.describe(name, settings)
            self.profiler.enable(timeline)
        except Exception as error:
            self.warn("the arguments of record() could not be stored", error)

    def end_stacks(self) -> None:
        """Sample no stacks from here on. What was sampled stays in the session."""
        self.profiler.sample_stacks(0)
        self.profiler.samples_stacks = False

    def mark(self, kind: str, text: str) -> None:
        """Store a remark about this instant in the session."""
        if self._flusher is not None:
            self._flusher.mark(kind, text)

    def add_file(self, path: Path, kind: str) -> None:
        """List a file that belongs to the session."""
        if self._flusher is not None:
            self._flusher.add_file(path, kind)

    def flush(self) -> None:
        """Write what was recorded so far. Warns instead of raising."""
        if self._holder == threading.get_ident():
            return  # called by a signal handler or a watcher inside a flush
        with self._lock:
            self._holder = threading.get_ident()
            try:
                if self._flusher is not None:
                    self._flusher.flush()
            finally:
                self._holder = 0
        if self._stop_after_flush is not None:
            self.stop(self._stop_after_flush)

    def stop(self, how: str = "finished") -> None:
        """End the run: stop recording, complete the session and write its reports. A second call does nothing."""
        if self.ended or self.profiler.recording is not self or os.getpid() != self._owner:
            return
        self.ending = True
        if self._holder == threading.get_ident():
            self._stop_after_flush = how  # the flush that this call interrupts must finish first
            return
        interrupt: KeyboardInterrupt | None = None
        while not self.ended:
            try:
                self._finish(how)
            except KeyboardInterrupt as error:
                if interrupt is not None:
                    self.ended = True  # the second Ctrl-C: give up
                interrupt = error
            except Exception as error:
                self.ended = True
                self.warn(f"the session in {self.folder} could not be completed", error)
        self.profiler.recording = None
        exits.forget(self)
        if interrupt is not None:
            raise interrupt

    def __enter__(self) -> Recording:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop(exits.outcome(value))

    def after_fork(self) -> None:
        """In a forked child: the session stays with the parent. SQLite objects must not even be closed here."""
        flusher, self._flusher = self._flusher, None
        self._requests = None
        _abandoned.append((flusher, self._thread))
        self._thread = None
        self._lock = threading.Lock()
        self._holder = 0
        self.profiler.recording = None
        if flusher is not None:
            flusher.work_for_parent()

    def warn(self, what: str, error: BaseException | None) -> None:
        self.profiler.warn(what, error)

    def _run(self) -> None:
        if self._requests is not None:
            self._requests.begin()
        # The first flush comes soon, so that even a short run that is killed leaves something.
        due = time.monotonic() + FLUSH_SECONDS / 4
        while not self._wait(max(FLUSH_SECONDS / 4, due - time.monotonic())):
            due = time.monotonic() + FLUSH_SECONDS  # from start to start: a slow flush does not delay the next
            with suppress(Exception):  # it has warned, if it could; the next one may succeed
                self.flush()
            with suppress(Exception):
                exits.repeat_signals()
            if self._requests is not None:
                self._requests.handle(self.on_request)

    def _wait(self, seconds: float) -> bool:
        """Wait for so long, or until the end of the run (True). Meanwhile take the samples that nobody else takes."""
        end = time.monotonic() + seconds
        while self.profiler.ticks_by_hand and time.monotonic() < end:
            # An iteration that takes as long as the period would always be seen at the same place.
            period = ELSEWHERE_PERIOD / 1e9 * self._random.uniform(0.75, 1.25)
            if self._wake.wait(min(period, max(0, end - time.monotonic()))):
                return True
            with suppress(Exception):
                self.profiler.ledger.stack_tick()
        return self._wake.wait(max(0, end - time.monotonic()))

    def _finish(self, how: str) -> None:
        while self.before_end:
            try:
                self.before_end.pop()()
            except Exception as error:  # the session is completed without it
                self.warn("a part of the run could not be completed", error)
        self.profiler.disable()
        self.profiler.ledger.pulse(None)
        self.profiler.sample_stacks(0)
        self._wake.set()
        waits_until = time.monotonic() + JOIN_SECONDS
        self.deadline = time.monotonic() + END_SECONDS
        if self._thread is not None and not self._thread.is_current:
            self._thread.join(JOIN_SECONDS)
        requests, self._requests = self._requests, None
        if requests is not None:
            requests.end()
        if not self._lock.acquire(timeout=max(0.1, waits_until - time.monotonic())):
            raise TimeoutError("a flush did not finish in time")
        try:
            self._end(how)
        finally:
            self._lock.release()
        self.ended = True

    def _end(self, how: str) -> None:
        flusher = self._flusher
        if flusher is None:
            if self.if_unwritten is not None and not self.quiet:
                self.if_unwritten()
            return
        if not flusher.closed:  # it is if Ctrl-C interrupted the outputs: those are tried once more
            flusher.end(how)
            if self._is_blank(flusher):
                flusher.discard()
                if flusher.is_deleted and self.if_blank is not None:
                    self.if_blank()
        while self.at_end and not flusher.is_deleted:
            flusher.call(self.at_end[0], self.folder)
            del self.at_end[0]

    def _is_blank(self, flusher: SessionFlusher) -> bool:
        """True for `train.py --help`, a typing error and the like. `last` is then still the last training."""
        return (
            self.launched
            and self.left_early
            and not self.flat_folders
            and environment.CONTROLLER not in os.environ  # an experiment reads the session of a training that failed
            and flusher.is_blank(BLANK_SECONDS)
        )


_abandoned: list[Any] = []


def _check_descriptors() -> None:
    """Raises OSError if rlprof would leave the program too few: without any it cannot even read its script."""
    try:
        used = len(os.listdir("/dev/fd"))
        allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    except OSError as error:
        if error.errno != errno.EMFILE:
            return  # unknown here
        used = allowed = 0
    if allowed != resource.RLIM_INFINITY and allowed - used < DESCRIPTORS:
        raise OSError(
            errno.EMFILE,
            f"only {allowed - used} more files can be opened, but a session and the program need {DESCRIPTORS}; "
            "raise the limit with `ulimit -n 1024`",
        )

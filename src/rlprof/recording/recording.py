"""A training being recorded: a thread that flushes the ledger to a session about once a second."""

from __future__ import annotations

import errno
import os
import resource
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from rlprof.ledger.catalogue import SUSPENDED
from rlprof.ledger.profiler import Profiler
from rlprof.recording import exits
from rlprof.recording.background import Background
from rlprof.recording.gather import LAST_PATIENCE, Workers
from rlprof.recording.system import SystemSampler
from rlprof.recording.worker import leave, work_for
from rlprof.session.folder import DATABASE, PRIVATE_FILE, REQUEST, new_folder
from rlprof.session.info import described, gather, readable
from rlprof.session.records import Artifact, Flush, Lost, Mark, Sample
from rlprof.session.secrets import mask_text
from rlprof.session.writer import SessionWriter

FLUSH_SECONDS = 1.0
DESCRIPTORS = 24
"""Some ten for the session, the samples and the workers; and as many that the program has left."""

END_SECONDS = 8.0
"""A process that is told to end has some ten seconds."""

JOIN_SECONDS = 6.0
"""How long the end of a run waits for a flush that is under way: a disk may hang, a training must not."""

Watcher = Callable[[Flush], None]
"""Called after each flush, on the flushing thread, with what it wrote."""


class Recording:
    """One run. Made by `record`; use it as a context manager, or let the end of the process end it."""

    def __init__(self, profiler: Profiler, name: str, parent: Path, settings: Mapping[str, Any]) -> None:
        self.profiler = profiler
        self.name = name
        self.folder: Path | None = None
        """The session's; None where it could not be made."""
        self.watchers: list[Watcher] = []
        self.before_end: list[Callable[[], None]] = []
        """Called while everything is still recorded."""
        self.at_end: list[Callable[[Path], None]] = []
        """Called with the folder once the session is complete."""
        self.flats: list[Path] = []
        """Folders that get raw.json and summary.txt as well."""
        self.verdict: list[str] = []
        """What the run says of itself when it has ended."""
        self.deadline = 0.0
        """Of time.monotonic(): when the end of the run should have come to its end."""
        self.quiet = False
        """Says nothing at the end."""
        self.launched = False
        """Begun by `rlprof run`, and not yet taken over by the program's own `record()`."""
        self._ledger = profiler.ledger
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._holder = 0
        """The thread that flushes at this moment."""
        self._stop_after_flush: str | None = None
        self._wake = threading.Event()
        self._thread: Background | None = None
        self._writer: SessionWriter | None = None
        self._sampler: SystemSampler | None = None
        self._workers: Workers | None = None
        self._no_workers: Exception | None = None
        self._unwritten: Flush | None = None
        self._failure: BaseException | None = None
        """Why that could not be written."""
        self._marks: list[Mark] = []
        self._files: list[Artifact] = []
        self._cpu_ns = 0
        self._resets = profiler.resets
        self.ending = False
        self.ended = False
        other = profiler.recording
        if other is not None:
            self._warn(f"the profiler is recorded to {other.folder} already; the second recording writes nothing", None)
            return
        profiler.recording = self
        leave(profiler)  # a worker that records a session of its own works for that
        try:
            _check_descriptors()
            self.folder = new_folder(name, parent)
            self._info = gather(name, self._ledger.now(), profiler.core, settings)
            self._writer = SessionWriter(self.folder / DATABASE, self._info)
            self._sampler = SystemSampler(self._ledger.now)
        except Exception as error:
            self._warn(
                f"no session can be written in {parent}; the training goes on, and is recorded in memory only", error
            )

    def start(self, timeline: int | None = None) -> None:
        """Begin recording and flushing."""
        if not self.profiler.enabled:
            self.profiler.reset()  # what was recorded before is no part of this run
            self._resets = self.profiler.resets
        try:
            self.profiler.enable(timeline)
        except Exception as error:
            self._warn(f"a timeline of {timeline!r} spans cannot be kept", error)
            self.profiler.enable()
        if self.profiler.recording is not self:
            return
        exits.watch(self)
        self._ledger.pulse(self.profiler.profile(SUSPENDED))
        if self._writer is not None:
            self._share()
            self.flush()  # so that a run that is killed at once leaves a session that says so
            try:
                self._thread = Background(self._run)
            except RuntimeError as error:
                self._warn("no thread can be started; the session is written at the end only", error)

    def _share(self) -> None:
        """With worker processes, should there be any."""
        if self.folder is not None and self.profiler.core == "c":
            try:
                self._workers = Workers(self.profiler, self.folder)
            except Exception as error:
                self._no_workers = error

    def take_over(self, name: str | None, settings: Mapping[str, Any], timeline: int | None) -> None:
        """The program that `rlprof run` records has a `record()` of its own: that is this recording, from its start."""
        self.launched = False
        try:
            with self._lock:
                if self._writer is not None:
                    self._info = described(self._info, name, settings)
                    self._writer.describe(self._info)
            self.profiler.enable(timeline)
        except Exception as error:
            self._warn("what record() was told could not be noted", error)

    def mark(self, kind: str, text: str) -> None:
        """Note something about this instant in the session."""
        self._marks.append(Mark(self._ledger.now(), readable(str(kind)), readable(mask_text(str(text)[:5000]))))

    def add_file(self, path: Path, kind: str) -> None:
        """List a file that belongs to the session."""
        inside = self.folder is not None and path.is_relative_to(self.folder)
        shown = path.relative_to(self.folder) if inside and self.folder is not None else path
        if inside:
            with suppress(OSError):  # it may be made later
                path.chmod(PRIVATE_FILE)
        self._files.append(Artifact(readable(str(shown)), kind, self._ledger.now()))

    def flush(self) -> None:
        """Write what was recorded up to now. Warns instead of raising."""
        if self._holder == threading.get_ident():
            return  # from a signal handler, or a watcher, inside a flush
        with self._lock:
            self._holder = threading.get_ident()
            try:
                self._flush()
            finally:
                self._holder = 0
        if self._stop_after_flush is not None:
            self.stop(self._stop_after_flush)

    def stop(self, how: str = "finished") -> None:
        """End the run: stop recording, write everything, and what it leaves for people. A second call does nothing."""
        if self.ended or self.profiler.recording is not self or os.getpid() != self._owner:
            return
        self.ending = True
        if self._holder == threading.get_ident():
            self._stop_after_flush = how  # the flush that this interrupts must come to its end first
            return
        interrupt: KeyboardInterrupt | None = None
        while not self.ended:
            try:
                self._finish(how)
            except KeyboardInterrupt as error:
                if interrupt is not None:
                    self.ended = True  # twice: it is meant
                interrupt = error
            except Exception as error:
                self.ended = True
                self._warn(f"the session in {self.folder} could not be completed", error)
        self.profiler.recording = None
        exits.forget(self)
        if interrupt is not None:
            raise interrupt

    def _finish(self, how: str) -> None:
        while self.before_end:
            try:
                self.before_end.pop()()
            except Exception as error:  # the session is completed without it, too
                self._warn("something of the run could not be completed", error)
        self.profiler.disable()
        self._ledger.pulse(None)
        self._wake.set()
        waits_until = time.monotonic() + JOIN_SECONDS
        self.deadline = time.monotonic() + END_SECONDS
        if self._thread is not None and not self._thread.is_here:
            self._thread.join(JOIN_SECONDS)
        if not self._lock.acquire(timeout=max(0.1, waits_until - time.monotonic())):
            raise TimeoutError("a flush does not come to its end")
        try:
            self._end(how)
        finally:
            self._lock.release()
        self.ended = True

    def __enter__(self) -> Recording:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop(exits.outcome(value))

    def after_fork(self) -> None:
        """In a forked child: the session stays the parent's, which it works for from here on. What belongs to SQLite is
        not even closed."""
        _abandoned.append((self._writer, self._thread))
        self._writer = self._thread = None
        self._lock = threading.Lock()
        self._holder = 0
        self.profiler.recording = None
        if self._workers is not None and self.folder is not None and self._ledger.members():
            work_for(self.profiler, self.folder)
        elif self._no_workers is not None:
            self._warn("what worker processes do cannot be recorded", self._no_workers)
        self._workers = None

    def _run(self) -> None:
        # The first flush comes soon, so that even a short run that is killed leaves something.
        due = time.monotonic() + FLUSH_SECONDS / 4
        while not self._wake.wait(max(FLUSH_SECONDS / 4, due - time.monotonic())):
            due = time.monotonic() + FLUSH_SECONDS  # from start to start: a slow flush does not put off the next
            with suppress(Exception):  # it has warned, if it could; the next one may succeed
                self.flush()
            with suppress(Exception):
                exits.repeat_signals()
            try:
                self._look_for_requests()
            except Exception as error:
                self._warn("what was asked of the running training could not be done", error)

    def _flush(self) -> None:
        if self._writer is None:
            return
        began = time.thread_time_ns()
        try:
            batch = self._collect()
            self._writer.write(batch)
            self._unwritten = None
        except Exception as error:
            self._failure = error
            if self._is_deleted():
                self._warn(f"{self.folder}/{DATABASE} was deleted; what is recorded will be lost", None)
            else:
                self._warn(
                    f"the session in {self.folder} cannot be written; what was recorded is kept, and tried again", error
                )
        else:
            for watcher in self.watchers:
                self._call(watcher, batch)
        self._cpu_ns += time.thread_time_ns() - began

    def _is_deleted(self) -> bool:
        return self.folder is not None and not (self.folder / DATABASE).exists()

    def _look_for_requests(self) -> None:
        """`rlprof capture` leaves a file in the session's folder."""
        if self.folder is None or not (self.folder / REQUEST).exists():
            return
        from rlprof.recording.captures import answer  # noqa: PLC0415 - hardly ever needed

        answer(self, self.folder / REQUEST)

    def _collect(self) -> Flush:
        """The ledger's state, and the journals. What could not be written comes first; until it is, nothing is drained,
        and the ledger keeps and merges what comes."""
        resets = self.profiler.resets
        if resets != self._resets:
            self._resets, self._unwritten, self._cpu_ns = resets, None, 0
        batch = self._unwritten
        if batch is None:
            batch = Flush(resets=resets, samples=self._sample())
            self._unwritten = batch  # whatever fails from here on, what was drained is not lost
            batch.iterations, batch.gains = self.profiler.drain_iterations()
            batch.events, batch.events_lost = self.profiler.drain_timeline()
            batch.marks, self._marks = self._marks, []
            batch.artifacts, self._files = self._files, []
        self._with_workers(lambda workers: workers.gather())
        batch.time = self._ledger.now()
        batch.raw = self._ledger.raw()
        batch.costs = list(self.profiler.span_costs)
        batch.writer_cpu_ns = self._cpu_ns
        batch.wait_cpu_ns = self.profiler.wait_cpu_ns
        batch.torch_threads = _torch_threads()
        if self.profiler.resets != resets:  # in between: the journals are of before, the state of after
            self._unwritten = None
            return self._collect()
        self._with_workers(lambda workers: workers.add_to(batch))
        trained = batch.raw["trained"]
        batch.after_ns = max(0, batch.raw["now"] - trained) if trained else 0
        return batch

    def _with_workers(self, do: Callable[[Workers], None]) -> None:
        if self._workers is None:
            return
        try:
            do(self._workers)
        except Exception as error:
            self._workers.close(complete=False)
            self._workers = None
            self._warn("what worker processes record could not be gathered; from here on it is left out", error)

    def _sample(self) -> list[Sample]:
        try:
            return [] if self._sampler is None else [self._sampler.sample()]
        except Exception as error:
            self._warn("the system could not be sampled", error)
            return []

    def _end(self, how: str) -> None:
        if self._workers is not None:
            self._workers.patience = LAST_PATIENCE
        for _ in range(2):  # the second writes what did not fit, or waited for the first
            self._flush()
        writer = self._writer
        if writer is None:
            self._say_what_is_in_memory()
            return
        complete = False
        try:
            lost = self._lost(writer)
            writer.end(how, lost)
            complete = lost is None
        except Exception as error:
            if not self._is_deleted():  # that was said
                self._warn(f"the session in {self.folder} could not be completed", error)
        self._with_workers(lambda workers: workers.close(complete))
        self._workers = None
        self._writer = None
        writer.close()
        if self._sampler is not None:
            self._sampler.close()
        for watcher in self.watchers:
            self._call(_close, watcher)
        for left in [] if self._is_deleted() else self.at_end:
            self._call(left, self.folder)

    def _lost(self, writer: SessionWriter) -> Lost | None:
        """The end of the run, if it could not be written."""
        if self._unwritten is None:
            return None
        raw = self._unwritten.raw or self._ledger.raw()
        return writer.missing(raw, str(self._failure) or type(self._failure).__name__)

    def _say_what_is_in_memory(self) -> None:
        if self.quiet:
            return
        from rlprof.recording.progress import say  # noqa: PLC0415 - hardly ever needed
        from rlprof.render.running import to_summary  # noqa: PLC0415

        say(f"rlprof: no session was written; this was recorded in memory:\n{to_summary(self.profiler.snapshot())}")

    def _call(self, function: Callable[[Any], None], argument: Any) -> None:
        try:
            function(argument)
        except Exception as error:
            self._warn(f"{getattr(function, '__qualname__', function)} failed", error)

    def _warn(self, what: str, error: BaseException | None) -> None:
        self.profiler.warn(what, error)


_abandoned: list[Any] = []


def _check_descriptors() -> None:
    """Raises OSError where rlprof would leave the program too few: without one it cannot even read its script."""
    try:
        used = len(os.listdir("/dev/fd"))
        allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    except OSError as error:
        if error.errno != errno.EMFILE:
            return  # nobody knows
        used = allowed = 0
    if allowed != resource.RLIM_INFINITY and allowed - used < DESCRIPTORS:
        raise OSError(
            errno.EMFILE,
            f"only {allowed - used} more files may be open at once, and a session needs {DESCRIPTORS} with what it "
            "leaves the program; raise the limit with `ulimit -n 1024`",
        )


def _close(watcher: Any) -> None:
    if hasattr(watcher, "close"):  # a function has nothing to close
        watcher.close()


def _torch_threads() -> int | None:
    torch = sys.modules.get("torch")
    try:
        return int(torch.get_num_threads()) if torch is not None else None
    except Exception:
        return None  # it is being imported at this moment

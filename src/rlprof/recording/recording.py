"""A training being recorded: a thread that flushes the ledger to a session about once a second."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from rlprof.capture.system import SystemSampler
from rlprof.ledger.profiler import Profiler, get_profiler
from rlprof.recording import exits
from rlprof.session.folder import DATABASE, new_folder, sessions_folder
from rlprof.session.info import gather
from rlprof.session.records import Batch, Mark
from rlprof.session.writer import SessionWriter

FLUSH_SECONDS = 1.0
JOIN_SECONDS = 10.0
"""How long the end of a run waits for a flush that is under way: a disk may hang, a training must not."""

Watcher = Callable[[Batch], None]
"""Called after each flush, on the flushing thread, with what it wrote."""


class Recording:
    """One run. Made by `record`; use it as a context manager, or let the end of the process end it."""

    def __init__(self, profiler: Profiler, name: str, parent: Path, settings: Mapping[str, Any]) -> None:
        self.profiler = profiler
        self.name = name
        self.folder: Path | None = None
        """The session's; None where it could not be made."""
        self.watchers: list[Watcher] = []
        self.at_end: list[Callable[[Path], None]] = []
        """Called with the folder once the session is complete."""
        self._ledger = profiler._ledger
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._writer: SessionWriter | None = None
        self._sampler: SystemSampler | None = None
        self._unwritten: Batch | None = None
        self._marks: list[Mark] = []
        self._cpu_ns = 0
        self.ending = False
        try:
            self.folder = new_folder(name, parent)
            info = gather(name, self._ledger.now(), profiler.core, settings)
            self._writer = SessionWriter(self.folder / DATABASE, info)
            self._sampler = SystemSampler(self._ledger.now)
        except Exception as error:
            self._warn(
                f"no session can be written in {parent}; the training goes on, and is recorded in memory only", error
            )

    def start(self, timeline: int | None = None) -> None:
        """Begin recording and flushing."""
        self.profiler.enable(timeline)
        if self._writer is not None:
            self.flush()  # so that a run that is killed at once leaves a session that says so
            self._thread = threading.Thread(target=self._run, name="rlprof-flush", daemon=True)
            self._thread.start()
        exits.watch(self)

    def mark(self, kind: str, text: str) -> None:
        """Note something about this instant in the session."""
        self._marks.append(Mark(self._ledger.now(), kind, text))

    def flush(self) -> None:
        """Write what was recorded up to now. Warns instead of raising."""
        with self._lock:
            self._flush()

    def stop(self, how: str = "finished") -> None:
        """End the run: stop recording, write everything, and what it leaves for people. A second call does nothing."""
        if self.ending or os.getpid() != self._owner:
            return
        self.ending = True
        self.profiler.disable()
        self._wake.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(JOIN_SECONDS)
        if self._lock.acquire(timeout=JOIN_SECONDS):
            try:
                self._end(how)
            finally:
                self._lock.release()
        exits.forget(self)

    def __enter__(self) -> Recording:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop(exits.outcome(value))

    def after_fork(self) -> None:
        """In a forked child: the session stays the parent's. What belongs to SQLite is not even closed here."""
        _abandoned.append((self._writer, self._thread))
        self._writer = self._thread = None
        self._lock = threading.Lock()

    def _run(self) -> None:
        # The first flush comes soon, so that even a short run that is killed leaves something.
        due = time.monotonic() + FLUSH_SECONDS / 4
        while not self._wake.wait(max(FLUSH_SECONDS / 4, due - time.monotonic())):
            due = time.monotonic() + FLUSH_SECONDS  # from start to start: a slow flush does not put off the next
            self.flush()

    def _flush(self) -> None:
        if self._writer is None:
            return
        began = time.thread_time_ns()
        try:
            batch = self._collect()
            self._unwritten = batch
            self._writer.write(batch)
            self._unwritten = None
        except Exception as error:
            self._warn(
                f"the session in {self.folder} cannot be written; what was recorded is kept, and tried again", error
            )
        else:
            for watcher in self.watchers:
                self._call(watcher, batch)
        self._cpu_ns += time.thread_time_ns() - began

    def _collect(self) -> Batch:
        """The ledger's state, and the journals. What could not be written comes first; until it is, nothing is drained,
        and the ledger keeps and merges what comes."""
        batch = Batch(self._ledger.now(), {}, [])
        unwritten = self._unwritten
        if unwritten is None:
            batch.iterations, batch.gains = self.profiler.drain_iterations()
            batch.events, batch.events_lost = self.profiler.drain_timeline()
            if self._sampler is not None:
                batch.samples = [self._sampler.sample()]
            batch.marks, self._marks = self._marks, []
        else:
            batch.iterations, batch.gains = unwritten.iterations, unwritten.gains
            batch.events, batch.events_lost = unwritten.events, unwritten.events_lost
            batch.samples, batch.marks = unwritten.samples, unwritten.marks
        batch.resets = self.profiler._resets
        batch.raw = self._ledger.raw()
        batch.costs = list(self.profiler._costs)
        batch.writer_cpu_ns = self._cpu_ns
        batch.torch_threads = _torch_threads()
        return batch

    def _end(self, how: str) -> None:
        late = self._unwritten is not None
        self._flush()
        if late and self._unwritten is None:
            self._flush()  # what came while that was unwritten
        writer, self._writer = self._writer, None
        if writer is None:
            return
        try:
            writer.end(how)
        except Exception as error:
            self._warn(f"the session in {self.folder} could not be completed", error)
        writer.close()
        if self._sampler is not None:
            self._sampler.close()
        for watcher in self.watchers:
            self._call(_close, watcher)
        for left in self.at_end:
            self._call(left, self.folder)

    def _call(self, function: Callable[[Any], None], argument: Any) -> None:
        try:
            function(argument)
        except Exception as error:
            self._warn(f"{getattr(function, '__qualname__', function)} failed", error)

    def _warn(self, what: str, error: BaseException) -> None:
        self.profiler._hooks.warn(what, error)


_abandoned: list[Any] = []


def _close(watcher: Any) -> None:
    if hasattr(watcher, "close"):  # a function has nothing to close
        watcher.close()


def _torch_threads() -> int | None:
    torch = sys.modules.get("torch")
    try:
        return int(torch.get_num_threads()) if torch is not None else None
    except Exception:
        return None  # it is being imported at this moment


def default_name() -> str:
    """The script's."""
    script = Path(sys.argv[0]) if sys.argv and sys.argv[0] else Path("training")
    return script.parent.name if script.stem == "__main__" else script.stem


def record(
    name: str | None = None,
    *,
    dir: str | os.PathLike[str] | None = None,
    summary_every: int = 0,
    jsonl: str | os.PathLike[str] | None = None,
    tensorboard: str | os.PathLike[str] | None = None,
    flat: str | os.PathLike[str] | None = None,
    timeline: int | None = None,
    settings: Mapping[str, Any] | None = None,
    profiler: Profiler | None = None,
) -> Recording:
    """Record this process's training to a session until the block, `stop()` or the process ends.

    name: of the session's folder; the script's unless told.
    dir: where the folder goes: RLPROF_DIR, or `rlprof-runs` here, unless told.
    summary_every: print a short table every so many iterations.
    jsonl: a file that gets one JSON line an iteration.
    tensorboard: a folder that gets scalars an iteration.
    flat: a folder that gets `raw/NAME_TIMESTAMP.json` and `reports/NAME_TIMESTAMP_summary.txt` as well.
    timeline: keep spans as events for `rlprof export`: so many in memory between two flushes.
    settings: of the training, to be shown with the report.
    """
    from rlprof.recording import leave, watch  # noqa: PLC0415 - what they need is not needed to record

    recording = Recording(
        profiler or get_profiler(), name or default_name(), Path(dir) if dir else sessions_folder(), settings or {}
    )
    for make in watch.watchers(recording.profiler, summary_every, jsonl, tensorboard):
        try:
            recording.watchers.append(make())
        except Exception as error:
            recording._warn("a view of the running training is left out", error)
    recording.at_end += leave.leavers(flat)
    recording.start(timeline)
    return recording

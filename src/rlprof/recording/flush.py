"""What a flush does: collect the ledger, the workers and a system sample, and write them to the session."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from rlprof.ledger.catalogue import STARTUP, SUSPENDED
from rlprof.ledger.profiler import Profiler
from rlprof.ledger.rows import NodeRow
from rlprof.ledger.stacks import DRIVER_PERIOD
from rlprof.probes.evidence import EvidenceReader
from rlprof.recording.gather import LAST_PATIENCE, Workers
from rlprof.recording.stacks import SessionStacks
from rlprof.recording.system import SystemSampler
from rlprof.recording.worker import work_for
from rlprof.session.evidence import Evidence
from rlprof.session.folder import DATABASE, PRIVATE_FILE
from rlprof.session.info import described, gather, readable
from rlprof.session.records import Artifact, Flush, Lost, Mark, Sample
from rlprof.session.secrets import mask_text
from rlprof.session.writer import SessionWriter

Watcher = Callable[[Flush], None]
"""Called after each flush, on the flushing thread, with the batch that was written."""


class SessionFlusher:
    """Writes one session. Only one thread at a time may call it: the recording holds a lock."""

    def __init__(
        self, profiler: Profiler, folder: Path, name: str, settings: Mapping[str, Any], watchers: list[Watcher]
    ) -> None:
        self.closed = False
        self.cpu_ns = 0
        """CPU time of all flushes."""
        self._profiler = profiler
        self._ledger = profiler.ledger
        self._folder = folder
        self._watchers = watchers
        self._sampler = SystemSampler(self._ledger.now)
        self._info = gather(name, self._ledger.now(), profiler.core, settings)
        self.writer = SessionWriter(folder / DATABASE, self._info)
        self._stacks = SessionStacks()
        self._evidence = EvidenceReader(profiler)
        self._workers: Workers | None = None
        self._no_workers: Exception | None = None
        """Why worker processes cannot be recorded."""
        self._unwritten: Flush | None = None
        self._failure: BaseException | None = None
        """Why the last batch could not be written."""
        self._marks: list[Mark] = []
        self._files: list[Artifact] = []
        self._has_remarks = False
        """The session has a mark or a file."""
        self._resets = profiler.resets
        self._ended = -1
        """Spans that have ended, and when that number last changed."""
        self._moved = 0

    def share(self) -> None:
        """Let worker processes join, if the training starts any."""
        if self._profiler.core == "c":
            try:
                self._workers = Workers(self._profiler, self._folder, self._stacks)
            except Exception as error:
                self._no_workers = error

    def describe(self, name: str | None, settings: Mapping[str, Any]) -> None:
        """Change the name and the settings that the session has."""
        self._info = described(self._info, name, settings)
        self.writer.describe(self._info)

    def mark(self, kind: str, text: str) -> None:
        self._has_remarks = True
        self._marks.append(Mark(self._ledger.now(), readable(str(kind)), readable(mask_text(str(text)[:5000]))))

    def add_file(self, path: Path, kind: str) -> None:
        shown = path
        if path.is_relative_to(self._folder):
            shown = path.relative_to(self._folder)
            with suppress(OSError):  # the file may be written later
                path.chmod(PRIVATE_FILE)
        self._has_remarks = True
        self._files.append(Artifact(readable(str(shown)), kind, self._ledger.now()))

    @property
    def is_deleted(self) -> bool:
        return not (self._folder / DATABASE).exists()

    def is_blank(self, seconds: float) -> bool:
        """True if the run was shorter, and nothing was recorded in it but its start-up."""
        raw = self._ledger.raw()
        names = {row[0]: row[1] for row in raw["operations"]}
        called = {names.get(node.operation) for node in map(NodeRow._make, raw["nodes"])}
        counted = raw["iterations"], raw["steps"], raw["episodes"], raw["trained"], raw["learned"]
        return (
            raw["wall"] < seconds * 1e9
            and not any(counted)
            and not self._has_remarks
            and called <= {None, STARTUP, SUSPENDED}
            and not self._ledger.members()
        )

    def discard(self) -> None:
        """Delete the closed session, unless its folder holds anything else, as a trace."""
        with suppress(OSError):
            if [path.name for path in self._folder.iterdir()] == [DATABASE]:
                (self._folder / DATABASE).unlink()
                self._folder.rmdir()

    def flush(self) -> None:
        """Write what was recorded so far. Warns instead of raising."""
        if self.closed:
            return
        began = time.thread_time_ns()
        try:
            batch = self._collect()
            self.writer.write(batch)
            self._unwritten = None
            self._stacks.written(batch.frames, batch.stacks)
        except Exception as error:
            self._failure = error
            if self.is_deleted:
                self._warn(f"{self._folder}/{DATABASE} was deleted. What is recorded from now on will be lost", None)
            else:
                self._warn(
                    f"the session in {self._folder} cannot be written. rlprof keeps the data and tries again", error
                )
        else:
            for watcher in self._watchers:
                self.call(watcher, batch)
        self.cpu_ns += time.thread_time_ns() - began

    def end(self, how: str) -> None:
        """Write the rest, complete the session and close it."""
        if self._workers is not None:
            self._workers.patience = LAST_PATIENCE
        for _ in range(2):  # the second writes what did not fit into the first, or waited for it
            self.flush()
        complete = False
        try:
            lost = self._lost()
            self.writer.end(how, lost)
            complete = lost is None
        except Exception as error:
            if not self.is_deleted:  # there was a warning about that already
                self._warn(f"the session in {self._folder} could not be completed", error)
        self._with_workers(lambda workers: workers.close(complete))
        self._workers = None
        self.closed = True
        self.writer.close()
        self._sampler.close()
        for watcher in self._watchers:
            self.call(_close, watcher)

    def work_for_parent(self) -> None:
        """In a forked child: the session stays with the parent, and this process becomes a worker for it."""
        if self._workers is not None and self._ledger.members():
            work_for(self._profiler, self._folder)
        elif self._no_workers is not None:
            self._warn("worker processes cannot be recorded", self._no_workers)

    def call(self, function: Callable[[Any], None], argument: Any) -> None:
        """Call a function that may fail. Warns instead of raising."""
        try:
            function(argument)
        except Exception as error:
            self._warn(f"{getattr(function, '__qualname__', function)} failed", error)

    def _collect(self) -> Flush:
        """The state of the ledger, and its journals. A batch that could not be written is tried again. Until it is
        written nothing more is drained: the ledger keeps and merges what is recorded meanwhile."""
        resets = self._profiler.resets
        if resets != self._resets:
            self._resets, self._unwritten, self.cpu_ns = resets, None, 0
            self._stacks.forget()
        batch = self._unwritten
        if batch is None:
            batch = Flush(resets=resets, samples=self._sample())
            self._unwritten = batch  # whatever fails from here on, what was drained is not lost
            batch.iterations, batch.gains = self._profiler.drain_iterations()
            batch.events, batch.events_lost = self._profiler.drain_timeline()
            batch.marks, self._marks = self._marks, []
            batch.artifacts, self._files = self._files, []
        self._with_workers(lambda workers: workers.gather())
        batch.time = self._ledger.now()
        batch.raw = self._ledger.raw()
        batch.costs = list(self._profiler.span_costs)
        self._stacks.take(self._ledger)
        batch.writer_cpu_ns = self.cpu_ns + self._stacks.own.cpu_ns
        batch.wait_cpu_ns = self._profiler.wait_cpu_ns
        batch.torch_threads = _torch_threads()
        batch.evidence = self._read_evidence(batch.evidence)
        if self._profiler.resets != resets:  # in between: the journals are from before the reset, the state is not
            self._unwritten = None
            return self._collect()
        self._with_workers(lambda workers: workers.add_to(batch))
        batch.frames, batch.stacks = self._stacks.rows()
        batch.tick_ns = DRIVER_PERIOD if self._profiler.samples_stacks else 0
        batch.stacks_lost = self._stacks.own.lost_ns
        batch.idle_ns = self._idle(batch)
        planned = self._profiler.planned.items()  # whatever the program has passed
        batch.planned = {kind: number for kind, number in planned if type(number) is int and 0 < number < 2**62}
        trained = batch.raw["trained"]
        batch.after_ns = max(0, batch.raw["now"] - trained) if trained else 0
        return batch

    def _idle(self, batch: Flush) -> int:
        """A deadlock that polls still ends spans, but only those that wait."""
        ended = sum(row.calls for row in batch.raw["nodes"] if 2 * row.waited <= row.self)
        if ended != self._ended:
            self._ended, self._moved = ended, batch.time
        return max(0, batch.time - self._moved)

    def _with_workers(self, do: Callable[[Workers], None]) -> None:
        if self._workers is None:
            return
        try:
            do(self._workers)
        except Exception as error:
            self._workers.close(complete=False)
            self._workers = None
            self._warn("the data of worker processes could not be read. They are left out from now on", error)

    def _sample(self) -> list[Sample]:
        try:
            return [self._sampler.sample()]
        except Exception as error:
            self._warn("the system could not be sampled", error)
            return []

    def _read_evidence(self, last: Evidence) -> Evidence:
        try:
            return self._evidence.read()
        except Exception as error:
            self._warn("what the probes have seen could not be read", error)
            return last

    def _lost(self) -> Lost | None:
        """The end of the run, if it could not be written."""
        if self._unwritten is None:
            return None
        raw = self._unwritten.raw or self._ledger.raw()
        return self.writer.missing(raw, str(self._failure) or type(self._failure).__name__)

    def _warn(self, what: str, error: BaseException | None) -> None:
        self._profiler.warn(what, error)


def _close(watcher: Any) -> None:
    if hasattr(watcher, "close"):  # a plain function has nothing to close
        watcher.close()


def _torch_threads() -> int | None:
    torch = sys.modules.get("torch")
    try:
        return int(torch.get_num_threads()) if torch is not None else None
    except Exception:
        return None  # torch is being imported at this moment

"""The driver's side of worker processes: requests and reads what they have recorded, and merges it into a flush."""

from __future__ import annotations

import os
import shutil
import stat
import zlib
from contextlib import suppress
from pathlib import Path

import msgspec

from rlprof.ledger.hooks import group_of
from rlprof.ledger.profiler import Profiler
from rlprof.ledger.rows import OperationRow
from rlprof.ledger.sharing import apportion, give_back, given_away
from rlprof.recording.stacks import SessionStacks
from rlprof.recording.worker import FOLDER, MOST_BYTES, PAGE, SUFFIX
from rlprof.recording.worker_counts import WorkerCounts
from rlprof.recording.worker_evidence import WorkersEvidence
from rlprof.recording.worker_iterations import WorkerIterations
from rlprof.recording.worker_trees import Dump, MergedWorker
from rlprof.session.folder import PRIVATE_FOLDER
from rlprof.session.records import Flush
from rlprof.session.schema import FIRST_OF_WORKERS

PATIENCE = 0.05
"""Seconds that a flush waits for the workers' answers. The training does not wait."""

LAST_PATIENCE = 0.25
MOST_ENDED = 64
"""So many ended processes of one group keep lanes of their own. Later processes continue the lanes of an ended one."""

MOST_PROCESSES = 4_000
"""Each process has a million of the four thousand million ids."""


class Workers:
    """The worker processes of this one. Without any, a flush only looks at a page in memory."""

    def __init__(self, profiler: Profiler, folder: Path, stacks: SessionStacks) -> None:
        self.patience = PATIENCE
        self._profiler = profiler
        self._ledger = profiler.ledger
        self._stacks = stacks
        self._own = os.getpid()
        self._folder = folder / FOLDER
        self._folder.mkdir(PRIVATE_FOLDER)
        with suppress(OSError):  # whatever the umask is; some file systems have no permissions
            self._folder.chmod(PRIVATE_FOLDER)
        try:
            self._ledger.share(self._folder / PAGE, True)
        except OSError:
            self._folder.rmdir()
            raise
        self._stamps: dict[str, tuple[int, int]] = {}
        """By file: the version that was read last."""
        self._fresh: dict[str, Dump] = {}
        """By file: read, but not merged yet."""
        self._by_file: dict[str, MergedWorker] = {}
        self._all: list[MergedWorker] = []
        self._gone: set[str] = set()
        self._operations: dict[str, tuple[int, str]] = {}
        """Id and category of names that only workers use."""
        self._epoch = -1
        self._begun = 0
        self._counts = WorkerCounts()
        self._iterations = WorkerIterations()
        self._evidence = WorkersEvidence()

    def gather(self) -> None:
        """Read what the workers have recorded. This comes before the driver's own ledger is read, so that no worker has
        received time that the driver has not yet given."""
        members = self._ledger.members()
        if self._own not in members or (len(members) == 1 and not self._stamps):
            return
        # A worker that has ended before its file is read has written its last data.
        ended = self._ledger.ended()
        self._ledger.request(self.patience)
        found = self._files()
        for entry in found:
            with suppress(OSError, ValueError):  # msgspec's errors are ValueErrors
                self._read(entry)
        living = {str(pid) for pid in self._ledger.members() if pid not in ended}
        self._gone = {entry.name for entry in found if entry.name.partition("-")[0] not in living}
        for pid in ended:
            self._ledger.dismiss(pid)

    def add_to(self, batch: Flush) -> None:
        """Add the workers' part to what a flush writes."""
        raw = batch.raw
        if raw["epoch"] != self._epoch:
            self._epoch = raw["epoch"]
            for worker in self._all:
                worker.forget()
            self._iterations.forget()
            self._counts = WorkerCounts()
        if raw["begun"] != self._begun:
            self._begun = raw["begun"]
            for worker in self._all:
                worker.begin_at(self._begun)
                self._stacks.put_worker(worker.number, worker.stacks)
        self._merge({name: id for id, name, _ in raw["operations"]})
        batch.evidence = self._evidence.added_to(batch.evidence)
        if not self._all and not given_away(raw):
            return
        trains = raw["learned"] or self._profiler.marked
        if not trains or not raw["steps"]:
            self._counts.add_to(raw, last=self.patience == LAST_PATIENCE, iterations=not trains)
        rows = [row for worker in self._all for row in worker.rows.values()]
        if not batch.with_workers:
            batch.with_workers = True
            self._iterations.add_to(batch, rows)
        received = [row.ledger for row in rows]
        given = given_away(raw)
        if sum(received) > max(0, given):
            # A process was killed between two writes to the page, so what it took is not known to the nanosecond.
            rows = [row._replace(ledger=ns) for row, ns in zip(rows, apportion(max(0, given), received))]
        raw["nodes"] = give_back(raw, given - sum(received)) + rows
        raw["lanes"] = raw["lanes"] + [lane for worker in self._all for lane in worker.lanes.values()]
        raw["operations"] = raw["operations"] + [
            OperationRow(id, name, kind) for name, (id, kind) in self._operations.items()
        ]

    def close(self, complete: bool) -> None:
        """Stop sharing. A complete session has everything that the workers wrote, so their files are deleted."""
        self._ledger.leave()
        if complete:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _files(self) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(self._folder) as entries:
                return [entry for entry in entries if entry.name.endswith(SUFFIX)]
        except OSError:
            return []  # the folder was deleted

    def _read(self, entry: os.DirEntry[str]) -> None:
        found = entry.stat()
        stamp = (found.st_mtime_ns, found.st_ino)
        if self._stamps.get(entry.name) == stamp:
            return
        if not stat.S_ISREG(found.st_mode) or found.st_size > MOST_BYTES:
            raise ValueError("not written by a worker")
        with open(entry.path, "rb", buffering=0) as file:
            data = file.read(found.st_size)
        if int.from_bytes(data[:4], "little") != zlib.crc32(data[4:]):
            raise ValueError("damaged")
        self._fresh[entry.name] = msgspec.msgpack.decode(memoryview(data)[4:], type=Dump)
        self._stamps[entry.name] = stamp

    def _merge(self, known: dict[str, int]) -> None:
        def operation_id(name: str, category: str) -> int:
            if name in known:
                return known[name]
            return self._operations.setdefault(name, (FIRST_OF_WORKERS + len(self._operations), category))[0]

        for name, dump in self._fresh.items():
            worker = self._by_file.get(name) or self._new_worker(name, dump)
            if worker is not None and dump.epoch == self._epoch and dump.is_consistent():
                worker.put(dump, operation_id, self._stacks.numbers(dump.frames))
                self._stacks.put_worker(worker.number, worker.stacks)
                self._counts.put(name, dump)
                self._evidence.put(name, dump)
        self._fresh.clear()
        for name in self._gone:
            self._counts.end(name)
            if name in self._by_file:
                self._by_file.pop(name).end()
            self._stamps.pop(name, None)
            with suppress(OSError):
                (self._folder / name).unlink()
        self._gone.clear()

    def _new_worker(self, file: str, dump: Dump) -> MergedWorker | None:
        name = dump.name
        if any(worker.name == name for worker in self._all):
            name = f"{name} ({dump.pid})"
        alike = [worker for worker in self._all if group_of(worker.name) == group_of(name)]
        ended = [worker for worker in alike if worker.ended]
        if len(self._all) >= MOST_PROCESSES and not ended:
            ended = [worker for worker in self._all if worker.ended]
        if len(ended) >= MOST_ENDED or (ended and len(self._all) >= MOST_PROCESSES):
            worker = next((worker for worker in ended if worker.name == name), ended[0])
            worker.begin_again(name if worker.name == name else group_of(name))
        elif len(self._all) < MOST_PROCESSES:
            worker = MergedWorker(len(self._all) + 1, name)
            worker.begin_at(self._begun)
            self._all.append(worker)
        else:
            self._profiler.warn("more than 4,000 worker processes at once. Further ones are left out", None)
            return None
        self._by_file[file] = worker
        return worker

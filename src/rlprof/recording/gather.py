"""The driver's side of worker processes: what they recorded is asked for, read, and put into what a flush writes."""

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
from rlprof.recording.worker import FOLDER, MOST_BYTES, PAGE, SUFFIX
from rlprof.recording.worker_counts import Counts
from rlprof.recording.worker_iterations import Allotment
from rlprof.recording.worker_trees import Dump, Graft
from rlprof.session.folder import PRIVATE_FOLDER
from rlprof.session.records import Flush
from rlprof.session.schema import FIRST_OF_WORKERS

PATIENCE = 0.05
"""Seconds that a flush waits for the workers' answers; the training does not wait with it."""

LAST_PATIENCE = 0.25
MOST_ENDED = 64
"""So many ended processes of one group keep lanes of their own; later ones go on in an ended one's."""

MOST_PROCESSES = 4_000
"""Each has a million ids, of the four thousand millions there are."""


class Workers:
    """The processes that work for this one. Without any, a flush costs a look at a page in memory."""

    def __init__(self, profiler: Profiler, folder: Path) -> None:
        self.patience = PATIENCE
        self._profiler = profiler
        self._ledger = profiler.ledger
        self._own = os.getpid()
        self._folder = folder / FOLDER
        self._folder.mkdir(PRIVATE_FOLDER)
        with suppress(OSError):  # whatever the umask; not every file system has permissions
            self._folder.chmod(PRIVATE_FOLDER)
        try:
            self._ledger.share(self._folder / PAGE, True)
        except OSError:
            self._folder.rmdir()
            raise
        self._stamps: dict[str, tuple[int, int]] = {}
        """By file: which version was read."""
        self._fresh: dict[str, Dump] = {}
        """Read, and not yet in a graft."""
        self._grafts: dict[str, Graft] = {}
        """By file."""
        self._all: list[Graft] = []
        self._gone: set[str] = set()
        self._operations: dict[str, tuple[int, str]] = {}
        """Names that only workers know: id and category."""
        self._epoch = -1
        self._begun = 0
        self._counts = Counts()
        self._allotment = Allotment()

    def gather(self) -> None:
        """Read what the workers have recorded. Before the driver's own ledger is read: nobody has received what is not
        given yet."""
        members = self._ledger.members()
        if self._own not in members or (len(members) == 1 and not self._stamps):
            return
        # Who has ended before its file is looked for has written its last.
        ended = self._ledger.ended()
        self._ledger.ask(self.patience)
        found = self._files()
        for entry in found:
            with suppress(OSError, ValueError):  # msgspec's errors are ValueErrors
                self._read(entry)
        living = {str(pid) for pid in self._ledger.members() if pid not in ended}
        self._gone = {entry.name for entry in found if entry.name.partition("-")[0] not in living}
        for pid in ended:
            self._ledger.dismiss(pid)

    def add_to(self, batch: Flush) -> None:
        """The workers' part of what a flush writes."""
        raw = batch.raw
        if raw["epoch"] != self._epoch:
            self._epoch = raw["epoch"]
            for graft in self._all:
                graft.forget()
            self._allotment.forget()
            self._counts = Counts()
        if raw["begun"] != self._begun:
            self._begun = raw["begun"]
            for graft in self._all:
                graft.begin_at(self._begun)
        self._graft({name: id for id, name, _ in raw["operations"]})
        if not self._all and not given_away(raw):
            return
        trains = raw["learned"] or self._profiler.marked
        if not trains or not raw["steps"]:
            self._counts.add_to(raw, last=self.patience == LAST_PATIENCE, iterations=not trains)
        rows = [row for graft in self._all for row in graft.rows.values()]
        if not batch.with_workers:
            batch.with_workers = True
            self._allotment.add_to(batch, rows)
        received = [row.ledger for row in rows]
        given = given_away(raw)
        if sum(received) > max(0, given):
            # A process was killed between two writes to the page: what it took is not known to the last nanosecond.
            rows = [row._replace(ledger=ns) for row, ns in zip(rows, apportion(max(0, given), received))]
        raw["nodes"] = give_back(raw, given - sum(received)) + rows
        raw["lanes"] = raw["lanes"] + [lane for graft in self._all for lane in graft.lanes.values()]
        raw["operations"] = raw["operations"] + [
            OperationRow(id, name, kind) for name, (id, kind) in self._operations.items()
        ]

    def close(self, complete: bool) -> None:
        """Nobody shares any more. What the workers wrote is in the session, if that is complete."""
        self._ledger.leave()
        if complete:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _files(self) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(self._folder) as entries:
                return [entry for entry in entries if entry.name.endswith(SUFFIX)]
        except OSError:
            return []  # somebody has deleted it

    def _read(self, entry: os.DirEntry[str]) -> None:
        found = entry.stat()
        stamp = (found.st_mtime_ns, found.st_ino)
        if self._stamps.get(entry.name) == stamp:
            return
        if not stat.S_ISREG(found.st_mode) or found.st_size > MOST_BYTES:
            raise ValueError("no worker has written it")
        with open(entry.path, "rb", buffering=0) as file:
            data = file.read(found.st_size)
        if int.from_bytes(data[:4], "little") != zlib.crc32(data[4:]):
            raise ValueError("it is damaged")
        self._fresh[entry.name] = msgspec.msgpack.decode(memoryview(data)[4:], type=Dump)
        self._stamps[entry.name] = stamp

    def _graft(self, known: dict[str, int]) -> None:
        def operation_id(name: str, category: str) -> int:
            if name in known:
                return known[name]
            return self._operations.setdefault(name, (FIRST_OF_WORKERS + len(self._operations), category))[0]

        for name, dump in self._fresh.items():
            graft = self._grafts.get(name) or self._new_graft(name, dump)
            if graft is not None and dump.epoch == self._epoch and dump.holds():
                graft.put(dump, operation_id)
                self._counts.put(name, dump)
        self._fresh.clear()
        for name in self._gone:
            self._counts.end(name)
            if name in self._grafts:
                self._grafts.pop(name).end()
            self._stamps.pop(name, None)
            with suppress(OSError):
                (self._folder / name).unlink()
        self._gone.clear()

    def _new_graft(self, file: str, dump: Dump) -> Graft | None:
        name = dump.name
        if any(graft.name == name for graft in self._all):
            name = f"{name} ({dump.pid})"
        alike = [graft for graft in self._all if group_of(graft.name) == group_of(name)]
        ended = [graft for graft in alike if graft.ended]
        if len(self._all) >= MOST_PROCESSES and not ended:
            ended = [graft for graft in self._all if graft.ended]
        if len(ended) >= MOST_ENDED or (ended and len(self._all) >= MOST_PROCESSES):
            graft = next((graft for graft in ended if graft.name == name), ended[0])
            graft.begin_again(name if graft.name == name else group_of(name))
        elif len(self._all) < MOST_PROCESSES:
            graft = Graft(len(self._all) + 1, name)
            graft.begin_at(self._begun)
            self._all.append(graft)
        else:
            self._profiler.warn("more than 4,000 worker processes at once; further ones are left out", None)
            return None
        self._grafts[file] = graft
        return graft

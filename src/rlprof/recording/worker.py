"""A worker's process: what it records goes to the session of the training that it works for.

It shares the driver's clocks, and writes what it has recorded to a file beside the session when the driver asks, about
once a second, and at its end. The driver's process puts that into the session: see gathering.py. Nothing here imports
what a worker does not need anyway: workers must start fast and stay small.
"""

from __future__ import annotations

import _thread
import atexit
import os
import sys
import threading
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from rlprof.ledger.catalogue import SUSPENDED
from rlprof.ledger.profiler import Profiler

FOLDER = "workers"
PAGE = "shared"
"""In that folder, the page of memory that the processes share."""

SUFFIX = ".dump"
LISTEN_SECONDS = 5.0
"""Without being asked for so long, a worker looks whether there is still somebody to ask."""

MOST_BYTES = 64 << 20
"""Of such a file. A process with a hundred thousand places in its call trees writes less than half of it."""

_KEPT = (
    "epoch", "begun", "driver_iteration", "steps", "episodes", "iterations", "iterating", "learned", "trained",
    "nodes",
)  # fmt: skip
"""Of the ledger's raw data, what is written."""

LAST_OF_ALL = -100
"""Among multiprocessing's finalizers: what others do at the end is still recorded."""


class Worker:
    """This process, for the driver's. Made where a process joins, and anew in each of its forked children."""

    def __init__(self, profiler: Profiler, folder: Path) -> None:
        self.pid = os.getpid()
        self.folder = folder
        self._profiler = profiler
        self._ledger = profiler.ledger
        self._path = folder / FOLDER / f"{self.pid}-{self._ledger.now()}{SUFFIX}"
        self._lock = _thread.allocate_lock()
        self._over = False
        self._ancestors: list[int] = []
        # A process that records nothing, as a server that only forks others, gets no thread and writes nothing.
        profiler.at_first_span(self._begin)

    def dump(self, epoch: int | None = None) -> None:
        """Write what was recorded. A folder that is gone was deleted, or its session is complete: nobody wants it."""
        with self._lock:
            if self._over:
                return
            try:
                data = msgspec.msgpack.encode(self._recorded(epoch))
                if len(data) + 4 > MOST_BYTES:
                    raise ValueError(f"it takes {len(data):,} bytes")
                aside = self._path.with_suffix(".part")
                # Whatever the umask: see rlprof.session.folder, which a worker does not import.
                with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb", buffering=0) as file:
                    os.fchmod(file.fileno(), 0o600)
                    file.write(zlib.crc32(data).to_bytes(4, "little") + data)
                aside.replace(self._path)
            except FileNotFoundError:
                self._over = True
            except Exception as error:
                self._profiler.warn("what a worker process records cannot be written", error)

    def leave(self) -> None:
        """It works for itself from here on."""
        self.dump()
        self._over = True
        self._profiler.at_first_span(None)
        atexit.unregister(self.dump)
        self._ledger.leave()
        self._profiler.driver = threading.main_thread().ident or 0

    def _recorded(self, epoch: int | None) -> dict[str, Any]:
        raw = self._ledger.raw()
        if epoch is not None and epoch != raw["epoch"]:
            self._profiler.reset()  # as the driver did
            raw = self._ledger.raw()
        if not (raw["learned"] or self._profiler.marked):
            raw["iterations"], raw["iterating"] = 0, False  # an environment's steps alone are no iterations
        return {
            **{key: raw[key] for key in _KEPT},
            "operations": [row._replace(name=_said(row.name)) for row in raw["operations"]],
            "lanes": [row._replace(name=_said(row.name)) for row in raw["lanes"]],
            "pid": self.pid,
            "parent": os.getppid(),
            "name": _said(process_name()),
            "ancestors": self._ancestors,
            "grouped": _is_grouped(),
        }

    def _begin(self) -> None:
        self._ancestors = list(_ancestors())
        atexit.register(self.dump)
        # Not threading's: that waits for the thread to run, and this is in the middle of somebody's code.
        _thread.start_new_thread(self._follow, ())
        self._ledger.pulse(self._profiler.profile(SUSPENDED))

    def _follow(self) -> None:
        with suppress(Exception):  # it has warned, if it could
            while not self._over:
                epoch = self._ledger.listen(LISTEN_SECONDS)
                if epoch == -1 or (epoch is None and not self._path.parent.exists()):
                    break
                if epoch is not None:
                    self.dump(epoch)
                    self._ledger.answer()
            self._over = True
            self._ledger.pulse(None)
            self._profiler.disable()


def _end_with_multiprocessing(worker: Worker) -> None:
    """Its children leave without atexit, but run its finalizers. A child that it has just forked forgets those of
    before, and says when."""
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        util.register_after_fork(worker, _finalize)
        _finalize(worker)


def _finalize(worker: Worker) -> None:
    if worker is _here.worker:
        from multiprocessing.util import Finalize  # noqa: PLC0415 - only where it is in use already

        Finalize(None, worker.dump, exitpriority=LAST_OF_ALL)


class _Here:
    """Which worker this process is."""

    worker: Worker | None = None


_here = _Here()


def join(profiler: Profiler, folder: str | os.PathLike[str]) -> bool:
    """In a process that a recorded training has started: record for its session. False where that cannot be."""
    if _here.worker is not None or profiler.recording is not None:
        return False
    try:
        if profiler.enabled:
            profiler.disable()
        profiler.ledger.share(Path(folder, FOLDER, PAGE), False)
    except OSError:
        return False  # the session has ended, or is somebody else's
    work_for(profiler, Path(folder))
    profiler.resume()
    return True


def joined_folder() -> Path | None:
    """Folder of the session that this process records to as a worker."""
    return _here.worker.folder if _here.worker is not None else None


def work_for(profiler: Profiler, folder: Path) -> None:
    """This process shares the clocks of the driver's already: it was forked from one that does, or has just joined."""
    profiler.driver = 0  # none of its threads
    profiler.ledger.local = threading.main_thread().ident or 0
    _here.worker = Worker(profiler, folder)
    _end_with_multiprocessing(_here.worker)


def leave(profiler: Profiler) -> None:
    """Work for nobody: this process is to have a session of its own."""
    worker = _here.worker
    if worker is not None and worker._profiler is profiler:
        _here.worker = None
        worker.leave()


def _said(name: str) -> str:
    """As UTF-8 can say it: a name may hold half a surrogate."""
    return name if name.isascii() else name.encode("utf-8", "replace").decode()


def process_name() -> str:
    """multiprocessing's, which users choose, or the script's."""
    multiprocessing = sys.modules.get("multiprocessing.process")
    name = multiprocessing.current_process().name if multiprocessing is not None else "MainProcess"
    if name != "MainProcess":
        return str(name)
    arguments = getattr(sys, "argv", None) or [""]
    options = sys.orig_argv[1 : len(sys.orig_argv) - len(arguments) + 1]
    if options[-2:-1] == ["-m"]:
        return options[-1].removesuffix(".__main__").rpartition(".")[2]
    if arguments[0] == "-c":
        return "python -c"
    return os.path.splitext(os.path.basename(arguments[0]))[0] or "python"


def _ancestors() -> Iterator[int]:
    """The processes above this one, as far as the system says."""
    pid = os.getppid()
    while pid > 1:
        yield pid
        try:
            with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
                pid = int(file.read(4096).rpartition(b")")[2].split()[1])  # the name before may hold anything
        except (OSError, ValueError, IndexError):
            return


def _is_grouped() -> bool:
    """Whether this process is a rank of several in torch.distributed."""
    distributed = sys.modules.get("torch.distributed")
    try:
        return bool(distributed and distributed.is_initialized() and distributed.get_world_size() > 1)
    except Exception:
        return False  # it is being imported at this moment, or this torch has none


def _after_fork_in_child() -> None:
    worker = _here.worker
    if worker is None or worker.pid == os.getpid():  # the recording's own hook has made it
        return
    _here.worker = None
    atexit.unregister(worker.dump)
    if worker._profiler.ledger.members():
        work_for(worker._profiler, worker.folder)
    else:
        worker._profiler.at_first_span(None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)

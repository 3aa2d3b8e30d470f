"""A worker process: what it records goes to the session of the driver.

It shares the driver's clocks. When the driver requests it, about once a second, and at its end it writes what it has
recorded to a file beside the session. The driver merges that into the session: see gather.py. This module imports only
what a worker needs anyway, because workers must start fast and stay small.
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
from rlprof.ledger.stacks import WORKER_PERIOD, StackTotals
from rlprof.probes.seen import worker_evidence
from rlprof.recording.stack_dump import StackAnswers
from rlprof.session.process import stat_of

FOLDER = "workers"
PAGE = "shared"
"""File in that folder: the page of memory that the processes share."""

SUFFIX = ".dump"
LISTEN_SECONDS = 5.0
"""After so long without a request, a worker checks whether the session still exists."""

MOST_BYTES = 64 << 20
"""Largest size of such a file. A process with a hundred thousand nodes in its call trees writes less than half of
it."""

_KEPT = (
    "epoch", "begun", "driver_iteration", "steps", "episodes", "iterations", "iterating", "learned", "trained",
    "nodes",
)  # fmt: skip
"""The parts of the ledger's raw data that are written."""

LAST_OF_ALL = -100
"""Priority among multiprocessing's finalizers: those of others run first and are still recorded."""


class Worker:
    """This process as a worker. Made when a process joins a session, and anew in each of its forked children."""

    def __init__(self, profiler: Profiler, folder: Path) -> None:
        self.pid = os.getpid()
        self.folder = folder
        self._profiler = profiler
        self._ledger = profiler.ledger
        self._path = folder / FOLDER / f"{self.pid}-{self._ledger.now()}{SUFFIX}"
        self._lock = _thread.allocate_lock()
        self._over = False
        self._ancestors: list[int] = []
        self._stacks = StackTotals()
        self.answers = StackAnswers(folder)
        # A process that records nothing, such as a server that only forks others, gets no thread and writes nothing.
        profiler.at_first_span(self._begin)

    def dump(self, epoch: int | None = None) -> None:
        """Write what was recorded; nothing if the folder is gone: it was deleted, or its session is complete."""
        with self._lock:
            if self._over:
                return
            try:
                data = msgspec.msgpack.encode(self._recorded(epoch))
                if len(data) + 4 > MOST_BYTES:
                    raise ValueError(f"it would take {len(data):,} bytes")
                aside = self._path.with_suffix(".part")
                # Private whatever the umask is, as in rlprof.session.folder, which a worker does not import.
                with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb", buffering=0) as file:
                    os.fchmod(file.fileno(), 0o600)
                    file.write(zlib.crc32(data).to_bytes(4, "little") + data)
                aside.replace(self._path)
            except FileNotFoundError:
                self._over = True
            except Exception as error:
                self._profiler.warn("the data of a worker process cannot be written", error)

    def leave(self) -> None:
        """From here on it is no worker."""
        self.dump()
        self._over = True
        self._profiler.at_first_span(None)
        atexit.unregister(self.dump)
        self._ledger.leave()
        self._stop()
        self._profiler.driver = threading.main_thread().ident or 0

    def _stop(self) -> None:
        self._ledger.pulse(None)
        self._profiler.sample_stacks(0)
        self._profiler.disable()

    def _recorded(self, epoch: int | None) -> dict[str, Any]:
        raw = self._ledger.raw()
        if epoch is not None and epoch != raw["epoch"]:
            self._profiler.reset()  # as the driver has done
            self._stacks.forget()
            raw = self._ledger.raw()
        if not (raw["learned"] or self._profiler.marked):
            raw["iterations"], raw["iterating"] = 0, False  # steps of an environment alone are no iterations
        self._stacks.take(self._ledger)
        return {
            **{key: raw[key] for key in _KEPT},
            "operations": [row._replace(name=_valid_utf8(row.name)) for row in raw["operations"]],
            "lanes": [row._replace(name=_valid_utf8(row.name)) for row in raw["lanes"]],
            "frames": self._stacks.frames,
            "stacks": [
                (node, frames, max(0, total.ns), total.memory)
                for (node, frames), total in self._stacks.totals.items()
                if total != (0, 0)
            ],
            "pid": self.pid,
            "parent": os.getppid(),
            "name": _valid_utf8(process_name()),
            "ancestors": self._ancestors,
            "grouped": _is_grouped(),
            "evidence": worker_evidence(self._profiler),
        }

    def _begin(self) -> None:
        self._ancestors = list(_ancestors())
        atexit.register(self.dump)
        atexit.register(self.answers.end)
        # Not threading.Thread: its start waits until the thread runs, and this is in the middle of the program's code.
        _thread.start_new_thread(self._follow, ())
        self._ledger.pulse(self._profiler.profile(SUSPENDED))
        self._profiler.sample_stacks(WORKER_PERIOD)

    def _follow(self) -> None:
        with suppress(Exception):  # it has warned, if it could
            self.answers.begin(process_name())
            while not self._over:
                epoch = self._ledger.listen(LISTEN_SECONDS)
                if epoch == -1 or (epoch is None and not self._path.parent.exists()):
                    break
                if epoch is not None:
                    self.dump(epoch)
                    self._ledger.answer()
                self.answers.answer()
            self._over = True
            if _here.worker is self:  # else it has left, and this process may record a session of its own by now
                self._stop()
        self.answers.end()


def _end_with_multiprocessing(worker: Worker) -> None:
    """Children of multiprocessing exit without atexit, but run its finalizers. A child that was just forked drops those
    of its parent, and calls a hook when it does."""
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        util.register_after_fork(worker, _finalize)
        _finalize(worker)


def _finalize(worker: Worker) -> None:
    if worker is _here.worker:
        from multiprocessing.util import Finalize  # noqa: PLC0415 - only if it is already in use

        Finalize(None, worker.dump, exitpriority=LAST_OF_ALL)
        Finalize(None, worker.answers.end, exitpriority=LAST_OF_ALL)


class _Here:
    """The worker that this process is, if any."""

    worker: Worker | None = None


_here = _Here()


def join(profiler: Profiler, folder: str | os.PathLike[str]) -> bool:
    """Record this process as a worker of the session in `folder`. False if that is not possible."""
    if _here.worker is not None or profiler.recording is not None:
        return False
    try:
        if profiler.enabled:
            profiler.disable()
        profiler.ledger.share(Path(folder, FOLDER, PAGE), False)
    except OSError:
        return False  # the session has ended, or belongs to another user
    work_for(profiler, Path(folder))
    profiler.resume()
    return True


def joined_folder() -> Path | None:
    """Folder of the session that this process records to as a worker."""
    return _here.worker.folder if _here.worker is not None else None


def work_for(profiler: Profiler, folder: Path) -> None:
    """Make this process a worker. It already shares the driver's clocks: it was forked from a process that does, or has
    just joined."""
    profiler.driver = 0  # no thread of this process
    profiler.ledger.local = threading.main_thread().ident or 0
    _here.worker = Worker(profiler, folder)
    _end_with_multiprocessing(_here.worker)


def leave(profiler: Profiler) -> None:
    """Stop being a worker: this process gets a session of its own."""
    worker = _here.worker
    if worker is not None and worker._profiler is profiler:
        _here.worker = None
        worker.leave()


def _valid_utf8(name: str) -> str:
    """A name may hold half a surrogate, which UTF-8 cannot encode."""
    return name if name.isascii() else name.encode("utf-8", "replace").decode()


def process_name() -> str:
    """The name that multiprocessing has for this process, which users can choose, or the name of the script."""
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
    """The processes above this one, as far as they are known."""
    pid = os.getppid()
    while pid > 1:
        yield pid
        try:
            pid = int(stat_of(pid)[1])
        except (OSError, ValueError, IndexError):
            return


def _is_grouped() -> bool:
    """True if this process is one of several ranks in torch.distributed."""
    distributed = sys.modules.get("torch.distributed")
    try:
        return bool(distributed and distributed.is_initialized() and distributed.get_world_size() > 1)
    except Exception:
        return False  # torch.distributed is being imported at this moment, or this torch has none


def _after_fork_in_child() -> None:
    worker = _here.worker
    if worker is None or worker.pid == os.getpid():  # made by the recording's own hook
        return
    _here.worker = None
    atexit.unregister(worker.dump)
    if worker._profiler.ledger.members():
        work_for(worker._profiler, worker.folder)
    else:
        worker._profiler.at_first_span(None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)

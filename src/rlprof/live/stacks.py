"""The Python stacks of all processes of a running training.

The stacks are requested in the session's folder, and rlprof's own thread in each process answers. It cannot if native
code holds the interpreter's lock of the process. Such a process gets a signal, on which faulthandler writes its stacks.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from rlprof.errors import RlprofError
from rlprof.ledger.code_files import OWN, owner_of
from rlprof.live import process_state
from rlprof.live.faulthandler_text import DumpedThread, read_dump
from rlprof.live.process_state import LockWatch
from rlprof.recording.sources import Sources
from rlprof.session.live import LiveSession
from rlprof.session.process import identity_of, runs
from rlprof.session.recorded_process import FOLDER, SUFFIX, Answer, RecordedProcess, dump_file, is_own_thread
from rlprof.session.requests import StacksRequest, answers_of, read_small, withdraw, write_request

RLPROF, SIGNAL = "rlprof", "signal"
"""Who wrote the stacks: rlprof's thread in the process, or faulthandler on a signal."""

OWN_SECONDS = 2.0
"""Time that rlprof's own thread has before a signal is sent. It looks for requests about once per second."""
PATIENCE = 8.0
"""Time for all answers. Without its driver, a worker process looks for requests every five seconds."""
SETTLED_SECONDS = 0.3
"""A dump is complete when its file has not grown for so long."""
POLL_SECONDS = 0.05
MOST_BYTES = 64 << 20

Line = tuple[str, int, str, str]


@dataclass(frozen=True, slots=True)
class ThreadStack:
    name: str
    is_main: bool
    frames: tuple[Line, ...]
    """(file, line, function, source), the most recent call last. The line is 0 and the source empty if unknown."""
    hidden: int = 0
    """Number of outer frames that are left out. -1 if there are some, and nobody counted them."""


@dataclass(frozen=True, slots=True)
class ProcessStacks:
    pid: int
    name: str
    """Name of the session for the driver, and of the lane for a worker process."""
    is_driver: bool
    answered: str
    """RLPROF, SIGNAL, or empty if there is no answer."""
    threads: tuple[ThreadStack, ...] = ()
    """The main thread first."""
    problem: str = ""
    """One sentence if there is no answer."""


def request_stacks(folder: Path, patience: float = PATIENCE) -> tuple[ProcessStacks, ...]:
    """The stacks of the driver and of all worker processes, the driver first. Takes about a second, and at most
    `patience` seconds if a process does not answer. Raises RlprofError if the session does not run."""
    request = _Request(folder)
    try:
        return request.wait(patience)
    finally:
        withdraw(request.file)


class _Request:
    """One request, and the processes that have not answered it yet."""

    def __init__(self, folder: Path) -> None:
        with LiveSession(folder) as session:
            self._info = info = session.info
            ended = session.end is not None
            self._lanes = {row.name for row in session.lane_rows()}
        if ended:
            raise RlprofError(f"{folder} has ended, so it has no stacks. Choose a session whose training is under way.")
        if info.host != platform.node():
            raise RlprofError(f"{folder} was started on {info.host}. Run `rlprof stacks` there.")
        if not runs(info.pid, info.process, info.started):
            raise RlprofError(
                f"{folder} was killed, so it has no stacks. Choose a session whose training is under way."
            )
        self._folder = folder
        self._sources = Sources(info.folder)
        self._found: dict[int, ProcessStacks] = {}
        self._watches: dict[int, LockWatch] = {}
        self._signalled: dict[int, _Dump] = {}
        self._driver = RecordedProcess(info.pid, info.process, "", 0, 0)
        self._processes: dict[int, RecordedProcess] = {}
        self._began = time.monotonic()
        try:
            self.file = write_request(folder, StacksRequest())
        except OSError as error:
            raise RlprofError(f"{folder} cannot be written, so no stacks can be requested: {error.strerror}") from error

    def wait(self, patience: float) -> tuple[ProcessStacks, ...]:
        while True:
            self._look_for_processes()
            self._read_answers()
            waiting = [process for process in self._processes.values() if process.pid not in self._found]
            if not waiting:
                break
            seconds = time.monotonic() - self._began
            for process in waiting:
                self._look_at(process, seconds)
            if seconds > patience:
                for process in waiting:
                    if process.pid not in self._found:
                        self._fail(process, _NO_ANSWER)
            time.sleep(POLL_SECONDS)
        driver = self._found.get(self._info.pid)
        if driver is None:
            raise RlprofError(f"{self._folder} ended before it could answer, so it has no stacks.")
        others = [one for one in self._found.values() if one is not driver]
        return driver, *sorted(others, key=lambda one: (_natural(one.name), one.pid))

    def _look_for_processes(self) -> None:
        """The driver, and all workers that still run. More of them may start at any time, and are left out."""
        if self._processes:
            return
        found = {self._driver.pid: self._driver}
        for path in (self._folder / FOLDER).glob(f"*{SUFFIX}"):
            with suppress(OSError, ValueError):
                process = msgspec.json.decode(read_small(path, MOST_BYTES), type=RecordedProcess)
                if process.identity and identity_of(process.pid) == process.identity:
                    found[process.pid] = process
        self._processes = found

    def _read_answers(self) -> None:
        for path in answers_of(self.file).glob(f"*{SUFFIX}"):
            with suppress(OSError, ValueError):
                answer = msgspec.json.decode(read_small(path, MOST_BYTES), type=Answer)
                dump = self._signalled.get(answer.pid)
                if answer.pid in self._found or (dump is not None and dump.has_begun()):
                    continue  # the signal may have ended what it has shown
                threads = tuple(
                    ThreadStack(
                        thread.name, thread.is_main, self._with_sources(thread.frames, read=False), thread.hidden
                    )
                    for thread in answer.threads
                )
                self._put(answer.pid, answer.name, RLPROF, threads)

    def _look_at(self, process: RecordedProcess, seconds: float) -> None:
        """A process that has not answered yet."""
        dump = self._signalled.get(process.pid)
        if dump is not None:
            if dump.is_complete():
                self._put(process.pid, process.name, SIGNAL, self._threads_of(dump.text(), process))
            return
        if identity_of(process.pid) != process.identity and process.identity:
            del self._processes[process.pid]  # it has ended
        elif process_state.is_stopped(process.pid):
            self._fail(process, _STOPPED)
        elif seconds > OWN_SECONDS and process.signal:
            # While Python code runs, a dump of its stacks from outside could go wrong.
            watch = self._watches.setdefault(process.pid, LockWatch(process.pid, process.thread))
            if watch.is_over():
                del self._watches[process.pid]
                if watch.has_waited():
                    self._send_signal(process)

    def _send_signal(self, process: RecordedProcess) -> None:
        """Send the signal if the handler in the process is certainly rlprof's."""
        path = dump_file(self._folder, process.pid)
        with suppress(OSError):
            dump = _Dump(path)
            if (
                identity_of(process.pid) == process.identity
                and process_state.catches(process.pid, process.signal)
                and process_state.has_open(process.pid, process.file, path)
            ):
                os.kill(process.pid, process.signal)
                self._signalled[process.pid] = dump

    def _threads_of(self, text: str, process: RecordedProcess) -> tuple[ThreadStack, ...]:
        found = []
        for thread in read_dump(text):
            if not thread.frames or is_own_thread(thread.frames[-1][0]):
                continue
            is_main = thread.ident == process.main
            frames = self._with_sources([(*frame, "") for frame in reversed(thread.frames)], read=True)
            found.append(ThreadStack(_name_of(thread, is_main), is_main, frames, -1 if thread.is_cut else 0))
        return tuple(sorted(found, key=lambda thread: (not thread.is_main, thread.name)))

    def _with_sources(self, frames: Sequence[Line], read: bool) -> tuple[Line, ...]:
        """With the text of each statement, secrets masked, and without rlprof's own functions around the program's."""
        others = [frame for frame in frames if owner_of(frame[0]) != OWN]
        return tuple(
            (file, line, function, source or (self._statement(file, line) if read else ""))
            for file, line, function, source in others or frames
        )

    def _statement(self, file: str, line: int) -> str:
        """The statement at a line of a Python file. Whoever can write to the session's folder can name any file there,
        such as one with secrets, also by a link."""
        path = os.path.realpath(os.path.join(self._info.folder, file))
        return self._sources.statement(path, line)[0] if path.endswith(".py") and os.path.isfile(path) else ""

    def _fail(self, process: RecordedProcess, problem: str) -> None:
        self._put(process.pid, process.name, "", problem=problem)

    def _put(
        self, pid: int, name: str, answered: str, threads: tuple[ThreadStack, ...] = (), problem: str = ""
    ) -> None:
        is_driver = pid == self._info.pid
        if is_driver:
            name = self._info.name
        elif f"{name} ({pid})" in self._lanes:
            name = f"{name} ({pid})"  # another process has the same name
        self._found[pid] = ProcessStacks(pid, name, is_driver, answered, threads, problem)


_STOPPED = "The process is stopped (SIGSTOP, Ctrl-Z, a debugger or a paused container), so it cannot answer."
_NO_ANSWER = "The process did not answer. It may be waiting for a disk, or it was recorded by an older rlprof."


class _Dump:
    """What a process appends to its file after the signal."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._size = self._begin = path.stat().st_size
        self._since = time.monotonic()

    def has_begun(self) -> bool:
        size = self._path.stat().st_size if self._path.exists() else 0
        if size != self._size:
            self._size, self._since = size, time.monotonic()
        return size > self._begin

    def is_complete(self) -> bool:
        return self.has_begun() and time.monotonic() - self._since > SETTLED_SECONDS

    def text(self) -> str:
        return read_small(self._path, MOST_BYTES)[self._begin :].decode("utf-8", "replace")


def _name_of(thread: DumpedThread, is_main: bool) -> str:
    return "MainThread" if is_main else thread.name or f"thread {thread.ident}"


def _natural(name: str) -> tuple[str, int]:
    """env-10 comes after env-9."""
    stem = name.rstrip("0123456789")
    number = name[len(stem) :]
    return stem, int(number) if number.isdecimal() and len(number) < 19 else 0

"""Other processes that do one thing at a time, on request: forked ones, and ones started from nothing that join."""

from __future__ import annotations

import mmap
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

from rlprof import Profiler


def received(raw: dict[str, Any]) -> int:
    """Time that a worker's process received of the driver's waiting."""
    elsewhere = {lane.id for lane in raw["lanes"] if lane.on_driver}
    return sum(row.ledger for row in raw["nodes"] if row.lane not in elsewhere)


class Hand:
    """What a process can do for a test."""

    def __init__(self, profiler: Profiler) -> None:
        self.profiler = profiler
        self.open: list[Any] = []

    def enter(self, name: str, **options: Any) -> None:
        self.open.append(self.profiler.profile(name, **options))
        self.open[-1].__enter__()

    def exit(self) -> None:
        self.open.pop().__exit__(None, None, None)

    def work(self, name: str, seconds: float) -> None:
        with self.profiler.profile(name):
            time.sleep(seconds)

    def enter_in_threads(self, name: str, threads: int) -> None:
        """Each thread stays in a span of its own until `leave_threads`."""
        inside, self.over = threading.Barrier(threads + 1), threading.Event()

        def work() -> None:
            with self.profiler.profile(name):
                inside.wait()
                self.over.wait()

        self.threads = [threading.Thread(target=work) for _ in range(threads)]
        for thread in self.threads:
            thread.start()
        inside.wait()

    def leave_threads(self) -> None:
        self.over.set()
        for thread in self.threads:
            thread.join()

    def work_at_random(self, seed: int, seconds: float) -> int:
        chance = random.Random(seed)
        until = time.monotonic() + seconds
        spans = 0
        while time.monotonic() < until:
            with self.profiler.profile("env_step"):
                for _ in range(chance.randrange(3)):
                    with self.profiler.profile("simulate", wait=chance.random() < 0.1):
                        sum(range(chance.randrange(2_000)))
            time.sleep(chance.random() * 2e-4)
            spans += 1
        return spans

    def call(self, name: str, *arguments: Any) -> Any:
        return getattr(self.profiler.ledger, name)(*arguments)

    def snapshot_adds_up(self) -> bool:
        self.profiler.snapshot().check()
        return True

    def answer_requests(self, seconds: float) -> None:
        """On a thread, as a worker does."""

        def listen() -> None:
            while (epoch := self.profiler.ledger.listen(seconds)) != -1:
                if epoch is not None:
                    self.profiler.ledger.answer()

        threading.Thread(target=listen, daemon=True).start()

    def fork(self) -> int:
        """What a child of this process receives while the driver waits."""
        ours, theirs = Pipe()
        child = os.fork()
        if child == 0:
            with self.profiler.profile("env_step"):
                time.sleep(0.05)
            theirs.send(received(self.profiler.ledger.raw()))
            os._exit(0)
        got: int = ours.recv()
        os.waitpid(child, 0)
        return got


def serve(connection: Connection, profiler: Profiler) -> None:
    hand = Hand(profiler)
    while True:
        try:
            order, arguments, options = connection.recv()
        except EOFError:
            return
        try:
            connection.send((True, getattr(hand, order)(*arguments, **options)))
        except Exception as error:
            connection.send((False, error))


class Process:
    """The end in the test."""

    def __init__(self, pid: int, connection: Connection, reap: Callable[[], Any]) -> None:
        self.pid = pid
        self._connection = connection
        self._reap = reap

    @classmethod
    def forked(cls, profiler: Profiler) -> Process:
        ours, theirs = Pipe()
        pid = os.fork()
        if pid == 0:
            ours.close()
            try:
                serve(theirs, profiler)
            finally:
                os._exit(0)
        theirs.close()
        return cls(pid, ours, lambda: os.waitpid(pid, 0))

    @classmethod
    def joined(cls, page: Path) -> Process:
        ours, theirs = Pipe()
        process = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno()), str(page)], pass_fds=[theirs.fileno()]
        )
        theirs.close()
        return cls(process.pid, ours, process.wait)

    def send(self, order: str, *arguments: Any, **options: Any) -> None:
        self._connection.send((order, arguments, options))

    def answer(self) -> Any:
        assert self._connection.poll(30), "no answer"
        fine, value = self._connection.recv()
        if not fine:
            raise value
        return value

    def do(self, order: str, *arguments: Any, **options: Any) -> Any:
        self.send(order, *arguments, **options)
        return self.answer()

    def received(self) -> int:
        return received(self.do("call", "raw"))

    def kill(self, number: int) -> None:
        os.kill(self.pid, number)

    def stop(self) -> None:
        """Stop the process, and wait until it no longer runs."""
        self.kill(signal.SIGSTOP)
        while "State:\tT" not in Path(f"/proc/{self.pid}/status").read_text():
            time.sleep(0.001)

    def end(self) -> None:
        """Kill the process. Closing the connection is not enough: processes forked later hold its other end, too."""
        self.kill(signal.SIGKILL)
        self._reap()
        self._connection.close()


class Driver:
    """A recording profiler that shares its clocks, and the processes that work for it."""

    def __init__(self, page: Path) -> None:
        self.page = page
        self.profiler = Profiler("c")
        self.ledger = self.profiler.ledger
        self.ledger.share(page, True)
        self.profiler.enable()
        self.processes: list[Process] = []

    def fork(self) -> Process:
        self.processes.append(Process.forked(self.profiler))
        return self.processes[-1]

    def join(self) -> Process:
        self.processes.append(Process.joined(self.page))
        self.processes[-1].do("call", "now")  # it is there
        return self.processes[-1]

    def wait(self, seconds: float) -> None:
        with self.profiler.profile("env_wait", wait=True):
            time.sleep(seconds)

    def missing(self) -> int:
        """Wall time that the accounts of this process do not have."""
        raw = self.ledger.raw()
        assert all(row.ledger >= 0 for row in raw["nodes"])
        return int(raw["wall"] - sum(row.ledger for row in raw["nodes"]))

    def account(self, operation: str) -> int:
        raw = self.ledger.raw()
        ids = {row.id for row in raw["operations"] if row.name == operation}
        return int(sum(row.ledger for row in raw["nodes"] if row.operation in ids))

    def map(self) -> mmap.mmap:
        with self.page.open("r+b") as file:
            return mmap.mmap(file.fileno(), 0)

    def end(self) -> None:
        for process in self.processes:
            process.end()
        self.profiler.disable()


if __name__ == "__main__":
    joined = Profiler("c")
    joined.ledger.share(sys.argv[2], False)
    joined.enable()
    serve(Connection(int(sys.argv[1])), joined)

"""The controller's end of an experiment: an arm is a training in a process that waits at each of its iterations.

The training's end is training.py, and what they send each other is in protocol.py.
"""

from __future__ import annotations

import os
import re
import secrets
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import dropwhile, takewhile
from pathlib import Path

import psutil

from rlprof.errors import RlprofError
from rlprof.experiment.protocol import ARM, LENGTH, PIPES, START, Boundary, unpack
from rlprof.recording.environment import CONTROLLER
from rlprof.session.secrets import mask_line

PATIENCE_SECONDS = 600.0
"""A training that takes longer than this to start, or for an iteration, hangs."""
END_SECONDS = 20.0
"""Time for a training to end when it is requested to."""
LEFT_SECONDS = 0.2
"""Time for its child processes to end after each signal."""
LAST_LINES, LAST_LETTERS = 8, 500
LAST_BYTES = 1 << 16
"""The part of the output that is searched for the last lines: an arm may print gigabytes."""
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


class ArmError(RlprofError):
    """An arm that cannot be measured: it crashed, hangs, or has no iterations."""


@dataclass(frozen=True, slots=True)
class Iterations:
    """What one iteration of an arm took, or several without a wait between them."""

    wall_ns: int
    cpu_ns: int
    """CPU time of all processes; without the ledger, of the training's own process only."""
    steps: int
    episodes: int
    ledger: Mapping[str, int]
    """Wall time in ns by the path of operations."""
    calls: Mapping[str, int]
    iterations: int = 1


class Arm:
    """A context manager: the process and its children are gone when the block ends."""

    def __init__(
        self,
        name: str,
        command: str,
        folder: Path,
        variables: Mapping[str, str] | None = None,
        working_folder: str | None = None,
        ledger: bool = True,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        """`command` is what one would type after `rlprof`: `run train.py --envs 4`, after environment variables if it
        needs some. `folder` gets its session and its
        output. `variables` are added to its environment. Without the ledger, messages are sent faster."""
        self.name = name
        self.command = command
        self.ended = False
        """It has no more iterations."""
        self._patience = patience
        self.deadline = time.monotonic() + patience
        """For the start, or for the current iteration."""
        self._output = folder / f"{name}.out"
        self._before: Boundary | None = None
        self._waits = False
        """It has reached the start of an iteration and waits."""
        go_read, self._go = os.pipe()
        self._done, done_write = os.pipe()
        self._mark = secrets.token_hex(16)
        protocol = {
            CONTROLLER: START,
            PIPES: f"{go_read},{done_write},{int(ledger)}",
            ARM: self._mark,
            "RLPROF_DIR": str(folder / name),
        }
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "rlprof", *words_of(command)],
                pass_fds=(go_read, done_write),
                env={**os.environ, **variables_of(command), **(variables or {}), **protocol},
                cwd=working_folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the controller, which then ends the arm
            )
        os.close(go_read)
        os.close(done_write)

    def __enter__(self) -> Arm:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def begin(self) -> None:
        """Wait until it is at the start of its first iteration."""
        self._before = self._receive()
        if self._before is None:
            raise ArmError(
                f"{self} ended without an iteration. If the probes find none, mark them in the training with"
                f" rlprof.get_profiler().iteration(){self.last_output()}"
            )

    def run_each(self, count: int) -> list[Iterations]:
        """Run so many iterations without a wait between them, each measured alone. Fewer if the training ends."""
        self.go(1, count)
        received = (self.receive() for _ in range(count))
        return list(takewhile(lambda one: one is not None, received))  # type: ignore[arg-type]

    def run(self, iterations: int = 1) -> Iterations | None:
        """Run up to MOST_ITERATIONS, measured together. None if the training has ended instead."""
        self.go(iterations)
        return self.receive(iterations)

    def go(self, iterations: int = 1, times: int = 1) -> None:
        """Let it run so many iterations, several times. `receive` must follow as often."""
        self._waits = False
        with suppress(BrokenPipeError):  # it died while it waited: `receive` sees that
            os.write(self._go, bytes([iterations]) * times)

    def receive(self, iterations: int = 1) -> Iterations | None:
        """Wait until they are done. None if the training has ended instead."""
        now, before = self._receive(), self._before
        if now is None or before is None:
            self.ended = True
            return None
        self._before = now
        return Iterations(
            now.wall_ns,
            now.cpu_ns,
            now.steps - before.steps,
            now.episodes - before.episodes,
            {path: ns - before.ledger.get(path, 0) for path, ns in now.ledger.items()},
            {path: calls - before.calls.get(path, 0) for path, calls in now.calls.items()},
            iterations,
        )

    def request_end(self) -> None:
        """Without waiting for it; `close` is still needed."""
        if self._go < 0:
            return
        os.close(self._go)
        self._go = -1
        if not self._waits:
            self._signal(signal.SIGTERM)  # it would see the closed pipe at its next iteration only, if there is one

    def close(self) -> None:
        """Let it end by itself, and kill what does not."""
        if self._done < 0:
            return
        try:
            self.request_end()
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            pass  # it is killed below, with its child processes
        finally:
            self._end_processes()
            self._process.wait()
            os.close(self._done)
            self._done = -1

    def _signal(self, number: int) -> None:
        """Send a signal to the training and its child processes, except those in sessions of their own."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _end_processes(self) -> None:
        """Most child processes end with the training. The others get SIGTERM, then SIGKILL."""
        for number, seconds in ((0, LEFT_SECONDS), (signal.SIGTERM, LEFT_SECONDS), (signal.SIGKILL, END_SECONDS)):
            for process in self._living() if number else ():
                with suppress(psutil.Error):
                    process.send_signal(number)
            deadline = time.monotonic() + seconds
            while left := self._living():
                if time.monotonic() >= deadline:
                    break
                time.sleep(0.01)
            if not left:
                return

    def _living(self) -> list[psutil.Process]:
        """Its processes except zombies, which stay until the machine's first process reaps them."""
        return [process for process in psutil.process_iter() if self._owns(process)]

    def _owns(self, process: psutil.Process) -> bool:
        """By the process group, or by the mark, which a process keeps that starts a session of its own."""
        with suppress(OSError, psutil.Error):
            owned = os.getpgid(process.pid) == self.pid or process.environ().get(ARM) == self._mark
            return owned and process.status() != psutil.STATUS_ZOMBIE
        return False

    def fileno(self) -> int:
        """Readable once it has sent a message, or has ended."""
        return self._done

    @property
    def pid(self) -> int:
        return self._process.pid

    def __str__(self) -> str:
        return f"{self.name} ({mask_line(self.command)})"

    def _receive(self) -> Boundary | None:
        """None if the training has ended by itself without an error."""
        header = self._read(LENGTH.size)
        if header is None:
            return None
        body = self._read(*LENGTH.unpack(header))
        if body is None:
            raise ArmError(f"{self} ended in the middle of a message{self.last_output()}")
        self._waits = True
        return unpack(body)

    def _read(self, size: int) -> bytes | None:
        data = b""
        if self._before is not None:
            self.deadline = time.monotonic() + self._patience
        while len(data) < size:
            left = self.deadline - time.monotonic()
            if left <= 0 or not select.select([self._done], [], [], left)[0]:
                which = "next" if self._before else "first"
                raise ArmError(
                    f"{self} did not reach its {which} iteration in {self._patience:g} s. It hangs, has none, or needs"
                    f" more --patience{self.last_output()}"
                )
            piece = os.read(self._done, size - len(data))
            if not piece:
                self._check_exit()
                return None
            data += piece
        return data

    def _check_exit(self) -> None:
        try:
            code = self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise ArmError(f"{self} closed its pipe but still runs{self.last_output()}") from error
        if code:
            how = f"was ended by signal {-code}" if code < 0 else f"failed with exit code {code}"
            raise ArmError(f"{self} {how}{self.last_output()}")

    def last_output(self) -> str:
        """The last lines that it has printed, to follow a sentence."""
        with self._output.open("rb") as output:
            output.seek(max(0, output.seek(0, os.SEEK_END) - LAST_BYTES))
            lines = output.read(LAST_BYTES).decode("utf-8", "replace").strip().splitlines()
        return ":" + "".join(f"\n  {line[-LAST_LETTERS:]}" for line in lines[-LAST_LINES:]) if lines else ""


def begin_all(arms: Sequence[Arm]) -> None:
    """Wait until all are at the start of their first iteration. One that fails is reported while others still start."""
    left = list(arms)
    while left:
        ready, _, _ = select.select(left, [], [], max(0.0, left[0].deadline - time.monotonic()))
        arm = ready[0] if ready else left[0]
        arm.begin()
        left.remove(arm)


def words_of(command: str) -> list[str]:
    """The words of a command as one would type it after `rlprof`, without variables and without a leading `rlprof`."""
    words = list(dropwhile(_ASSIGNMENT.match, _split(command)))
    words = words[1:] if words[:1] == ["rlprof"] else words
    if words[:1] not in (["run"], ["train"]):
        raise RlprofError(f"{command!r} cannot be run as a training: the command must begin with run or train")
    return words


def variables_of(command: str) -> dict[str, str]:
    """Environment variables before a command, as in a shell: `OMP_NUM_THREADS=1 run train.py`."""
    pairs = (word.partition("=") for word in takewhile(_ASSIGNMENT.match, _split(command)))
    return {name: value for name, _, value in pairs}


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise RlprofError(f"{command!r} is not a command line: {error}") from error

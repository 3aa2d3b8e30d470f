"""One of the trainings that are compared: a process that waits at each of its iterations until it may go on."""

from __future__ import annotations

import os
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
from itertools import takewhile
from pathlib import Path

import msgspec
import psutil

from rlprof.errors import RlprofError
from rlprof.experiment.inside import LENGTH, Told
from rlprof.recording.environment import ARM, TURNS
from rlprof.session.secrets import mask_line

PATIENCE_SECONDS = 600.0
"""For an iteration, or for the start; after that, it hangs."""
END_SECONDS = 20.0
"""For a training to end when it is told to."""
LEFT_SECONDS = 0.2
"""For what it has started, after each signal."""
LAST_LINES, LAST_LETTERS = 8, 500
LAST_BYTES = 1 << 16
"""In which these lines are looked for: an arm may print gigabytes."""
MOST_ITERATIONS = 255
"""Of one turn."""


class ArmError(RlprofError):
    """An arm that cannot be compared: it crashed, hangs, or has no iterations."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One iteration of an arm, or several without a wait between them."""

    wall_ns: int
    cpu_ns: int
    """Of all its processes; without the ledger, of the training's own only."""
    steps: int
    episodes: int
    ledger: Mapping[str, int]
    """By the path of operations: ns of the wall time."""
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
        """`command` is what one would type after `rlprof`: `run train.py --envs 4`. `folder` is for what it leaves,
        `variables` are added to its environment. Without the ledger, a turn is told of in a moment."""
        self.name = name
        self.command = command
        self.ended = False
        """It has no more iterations."""
        self._patience = patience
        self.deadline = time.monotonic() + patience
        """Of the start or of the turn that it is at."""
        self._output = folder / f"{name}.out"
        self._before: Told | None = None
        self._waits = False
        """At the start of an iteration, to be told to go on."""
        go_read, self._go = os.pipe()
        self._done, done_write = os.pipe()
        self._mark = secrets.token_hex(16)
        turns = {
            TURNS: f"{go_read},{done_write},{int(ledger)}",
            ARM: self._mark,
            "RLPROF_DIR": str(folder / name),
        }
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "rlprof", *words_of(command)],
                pass_fds=(go_read, done_write),
                env={**os.environ, **(variables or {}), **turns},
                cwd=working_folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for who compares; what the arm has started ends with it
            )
        os.close(go_read)
        os.close(done_write)

    def __enter__(self) -> Arm:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def begin(self) -> None:
        """Wait until it is at the start of its first iteration."""
        self._before = self._hear()
        if self._before is None:
            raise ArmError(
                f"{self} has ended without an iteration; where the probes find none, mark them in the training:"
                f" rlprof.get_profiler().iteration(){self.last_words()}"
            )

    def take_turns(self, count: int) -> list[Turn]:
        """So many turns of one iteration without a wait between them; fewer where it has ended instead."""
        self.go_on(1, count)
        turns = (self.hear_turn() for _ in range(count))
        return list(takewhile(lambda turn: turn is not None, turns))  # type: ignore[arg-type]

    def take_turn(self, iterations: int = 1) -> Turn | None:
        """Up to MOST_ITERATIONS as one; None where it has ended instead."""
        self.go_on(iterations)
        return self.hear_turn(iterations)

    def go_on(self, iterations: int = 1, turns: int = 1) -> None:
        """Each turn is to be heard."""
        self._waits = False
        with suppress(BrokenPipeError):  # it died while it waited: what it left is heard next
            os.write(self._go, bytes([iterations]) * turns)

    def hear_turn(self, iterations: int = 1) -> Turn | None:
        """Wait until it has taken one; None where it has ended instead."""
        told, before = self._hear(), self._before
        if told is None or before is None:
            self.ended = True
            return None
        self._before = told
        return Turn(
            told.wall_ns,
            told.cpu_ns,
            told.steps - before.steps,
            told.episodes - before.episodes,
            {path: ns - before.ledger.get(path, 0) for path, ns in told.ledger.items()},
            {path: calls - before.calls.get(path, 0) for path, calls in told.calls.items()},
            iterations,
        )

    def let_end(self) -> None:
        """Without a wait for it; `close` is still needed."""
        if self._go < 0:
            return
        os.close(self._go)
        self._go = -1
        if not self._waits:
            self._signal(signal.SIGTERM)  # it hears of the pipe at its next iteration only, if there is one

    def close(self) -> None:
        """Let it end itself, and end what does not."""
        if self._done < 0:
            return
        try:
            self.let_end()
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            pass  # it is ended below, with what it has started
        finally:
            self._end_the_rest()
            self._process.wait()
            os.close(self._done)
            self._done = -1

    def _signal(self, number: int) -> None:
        """Send a signal to the training and to what it has started, but for what has a session of its own."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _end_the_rest(self) -> None:
        """Most of what it has started ends with it. What does not is asked to, and then killed."""
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
        """Its processes but for zombies, which stay for as long as the machine's first process likes."""
        return [process for process in psutil.process_iter() if self._is_its(process)]

    def _is_its(self, process: psutil.Process) -> bool:
        """By the group, or by the mark: whoever starts a session of its own leaves the group and keeps the mark."""
        with suppress(OSError, psutil.Error):
            its = os.getpgid(process.pid) == self.pid or process.environ().get(ARM) == self._mark
            return its and process.status() != psutil.STATUS_ZOMBIE
        return False

    def fileno(self) -> int:
        """Readable once it has said something, or has ended."""
        return self._done

    @property
    def pid(self) -> int:
        return self._process.pid

    def __str__(self) -> str:
        return f"{self.name} ({mask_line(self.command)})"

    def _hear(self) -> Told | None:
        """None where it has ended, by itself and well."""
        header = self._read(LENGTH.size)
        if header is None:
            return None
        body = self._read(*LENGTH.unpack(header))
        if body is None:
            raise ArmError(f"{self} was cut off in mid-sentence{self.last_words()}")
        self._waits = True
        return msgspec.json.decode(body, type=Told)

    def _read(self, size: int) -> bytes | None:
        data = b""
        if self._before is not None:
            self.deadline = time.monotonic() + self._patience
        while len(data) < size:
            left = self.deadline - time.monotonic()
            if left <= 0 or not select.select([self._done], [], [], left)[0]:
                which = "next" if self._before else "first"
                raise ArmError(
                    f"{self} has not come to its {which} iteration in {self._patience:g} s: it hangs, has none, or"
                    f" needs more --patience{self.last_words()}"
                )
            piece = os.read(self._done, size - len(data))
            if not piece:
                self._see_it_end()
                return None
            data += piece
        return data

    def _see_it_end(self) -> None:
        try:
            code = self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise ArmError(f"{self} has closed its pipe and goes on{self.last_words()}") from error
        if code:
            how = f"was ended by signal {-code}" if code < 0 else f"failed with exit code {code}"
            raise ArmError(f"{self} {how}{self.last_words()}")

    def last_words(self) -> str:
        """The end of what it has printed, to follow a sentence."""
        with self._output.open("rb") as output:
            output.seek(max(0, output.seek(0, os.SEEK_END) - LAST_BYTES))
            lines = output.read(LAST_BYTES).decode("utf-8", "replace").strip().splitlines()
        return ":" + "".join(f"\n  {line[-LAST_LETTERS:]}" for line in lines[-LAST_LINES:]) if lines else ""


def begin_all(arms: Sequence[Arm]) -> None:
    """Wait until all are at the start of their first iteration. One that fails is named while others still start."""
    left = list(arms)
    while left:
        heard, _, _ = select.select(left, [], [], max(0.0, left[0].deadline - time.monotonic()))
        arm = heard[0] if heard else left[0]
        arm.begin()
        left.remove(arm)


def words_of(command: str) -> list[str]:
    """What one would type after `rlprof`, with or without it."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise RlprofError(f"{command!r} is no command line: {error}") from error
    words = words[1:] if words[:1] == ["rlprof"] else words
    if words[:1] not in (["run"], ["train"]):
        raise RlprofError(f"{command!r} cannot be compared: an arm begins with run or train")
    return words

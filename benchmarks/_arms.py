"""Run several variants of a training interleaved: each in its own process, one at a time, in random order."""

from __future__ import annotations

import os
import random
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

TRAININGS = Path(__file__).parent / "trainings"
NAMES = ("sb3_ppo", "sb3_recurrent_ppo", "torchrl_ppo", "handwritten_ppo")


def tools(folder: Path) -> dict[str, tuple[list[str], dict[str, str]]]:
    """How each profiler starts a training: the command before the script, and the environment."""
    python = sys.executable
    found: dict[str, tuple[list[str], dict[str, str]]] = {
        "cProfile": ([python, "-m", "cProfile", "-o", str(folder / "cprofile.out")], {}),
        "torch.profiler": ([python], {"TURNS_TORCH": "1"}),
        "VizTracer": ([python, "-m", "viztracer", "-o", str(folder / "viztracer.json"), "--quiet"], {}),
        "pyinstrument": ([python, "-m", "pyinstrument", "-o", str(folder / "pyinstrument.txt")], {}),
    }
    py_spy = shutil.which("py-spy", path=f"{Path(python).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if py_spy:
        found["py-spy"] = ([py_spy, "record", "-o", str(folder / "py-spy.svg"), "--", python], {})
    return found


@dataclass
class Arm:
    """One process of a training, which waits until it may run."""

    name: str
    process: subprocess.Popen[bytes]
    go: int
    done: int
    errors: Path
    seconds: list[float] = field(default_factory=list)
    """Seconds of each iteration."""

    @classmethod
    def start(
        cls, name: str, before: Sequence[str], training: str, folder: Path, environment: Mapping[str, str]
    ) -> Arm:
        go_read, go = os.pipe()
        done, done_write = os.pipe()
        errors = folder / f"{name.replace(' ', '-')}.stderr"
        command = [*before, str(TRAININGS / f"{training}.py"), "--iterations", "100000"]
        with errors.open("wb") as stderr:
            process = subprocess.Popen(
                command,
                pass_fds=(go_read, done_write),
                env={**os.environ, **environment, "TURNS": f"{go_read},{done_write}", "OMP_NUM_THREADS": "1"},
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                cwd=folder,
            )
        os.close(go_read)
        os.close(done_write)
        arm = cls(name, process, go, done, errors)
        arm._read()  # returns when the training is ready for its first iteration
        return arm

    def _read(self) -> tuple[float, bool]:
        taken = os.read(self.done, struct.calcsize("d?"))
        if not taken:
            raise RuntimeError(f"{self.name} ended: {self.errors.read_text()[-2000:]}")
        seconds, iteration_ended = struct.unpack("d?", taken)
        return seconds, iteration_ended

    def go_on(self) -> tuple[float, bool]:
        """Let it run until its next pause. Returns the seconds it ran, and whether an iteration has ended."""
        os.write(self.go, b"g")
        return self._read()

    def stop(self) -> None:
        os.close(self.go)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.done)


@contextmanager
def running(
    training: str, folder: Path, commands: Mapping[str, tuple[Sequence[str], Mapping[str, str]]]
) -> Iterator[dict[str, Arm]]:
    """Start one process per command: what precedes the script, and the environment. The processes end with the
    block."""
    arms: dict[str, Arm] = {}
    try:
        for name, (before, environment) in commands.items():
            arms[name] = Arm.start(name, before, training, folder, environment)
        yield arms
    finally:
        for arm in arms.values():
            arm.stop()


def take_turns(arms: Sequence[Arm], rounds: int, warm_up: int = 3, seed: int = 1) -> None:
    """Let every arm run this many iterations, a part of an iteration at a time. The warm-up does not count.

    The noise of the ratio of two neighbouring parts is the same for parts of 1 ms and of 200 ms. So the more parts an
    iteration has, the more certain is their mean.
    """
    chance = random.Random(seed)
    for number in range(-warm_up, rounds):
        taken = {arm.name: 0.0 for arm in arms}
        running = list(arms)
        while running:
            for arm in chance.sample(running, len(running)):
                seconds, ended = arm.go_on()
                taken[arm.name] += seconds
                if ended:
                    running.remove(arm)
        if number >= 0:
            for arm in arms:
                arm.seconds.append(taken[arm.name])

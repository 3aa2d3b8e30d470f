"""The topologies of trainings, with parts that can really be made faster while they run.

A training has only environments, a policy and an update. Each part computes for a known time, in Python code or in
code that releases the GIL as networks do. --speeds names a file with a number for each part, which is read at each
call. With 2.0 a part does half the work.
"""

from __future__ import annotations

import argparse
import hashlib
import mmap
import multiprocessing
import queue
import struct
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from rlprof import get_profiler, profile

PARTS = ("env_step", "policy_forward", "update")
ENVS, STEPS = 4, 2
"""Size of an iteration. It is short, because a shared machine keeps its speed for about 50 ms only."""
UNIT = 18
"""Rounds of a key derivation that take about 10 us."""
QUEUE = 2


class Speeds:
    def __init__(self, path: str | None) -> None:
        self._memory: Any = None
        if path:
            with Path(path).open("r+b") as file:
                self._memory = mmap.mmap(file.fileno(), 0)

    def __getitem__(self, part: str) -> float:
        return struct.unpack_from("d", self._memory, 8 * PARTS.index(part))[0] if self._memory else 1.0


def python_code(units: float) -> None:
    """Compute with the GIL. A unit is about 10 us."""
    total = 0
    for number in range(int(units * 190)):
        total += number


def released(units: float) -> None:
    """Compute without the GIL. It is released once, as by a network: code that often releases it gets it back late."""
    hashlib.pbkdf2_hmac("sha256", b"nothing", b"to hide", int(units * UNIT))


class Training:
    def __init__(self, speeds: Speeds, env_work: Callable[[float], None]) -> None:
        self.speeds = speeds
        self.env_work = env_work

    def env_step(self, _env: int) -> None:
        with profile("env_step"):
            self.env_work(60 / self.speeds["env_step"])

    def env_steps(self) -> None:
        for env in range(ENVS):
            self.env_step(env)

    def policy_forward(self) -> None:
        with profile("policy_forward"):
            released(100 / self.speeds["policy_forward"])

    def update(self, units: float = 300) -> None:
        with profile("update"):
            released(units / self.speeds["update"])


def synchronous(training: Training, iterations: int, step_envs: Callable[[], object]) -> None:
    """The environments step together, after the policy and before the update."""
    for _ in range(iterations):
        get_profiler().iteration()
        for _ in range(STEPS):
            training.policy_forward()
            step_envs()
            get_profiler().add_steps(ENVS)
        training.update()


def serial(training: Training, iterations: int) -> None:
    synchronous(training, iterations, training.env_steps)


def threads(training: Training, iterations: int) -> None:
    with ThreadPoolExecutor(ENVS) as pool:
        synchronous(training, iterations, lambda: list(pool.map(training.env_step, range(ENVS))))


def processes(training: Training, iterations: int) -> None:
    context = multiprocessing.get_context("fork")
    ends = [context.Pipe() for _ in range(ENVS)]

    def serve(connection: Any) -> None:
        while connection.recv():
            training.env_step(0)
            connection.send(True)

    def step_envs() -> None:
        for end, _ in ends:
            end.send(True)
        for end, _ in ends:
            end.recv()

    for _, end in ends:
        context.Process(target=serve, args=(end,), daemon=True).start()
    synchronous(training, iterations, step_envs)


def asynchronous(training: Training, iterations: int, update: float) -> None:
    """An actor in a process of its own is up to two rollouts ahead."""
    context = multiprocessing.get_context("fork")
    room = context.Semaphore(QUEUE)
    receiving, sending = context.Pipe(duplex=False)

    def act() -> None:
        while True:
            room.acquire()
            with profile("collect"):
                training.env_steps()
                training.policy_forward()
            sending.send(ENVS)

    def receive() -> int:
        steps: int = receiving.recv()
        room.release()
        return steps

    context.Process(target=act, daemon=True).start()
    learn(training, iterations, update, receive)


def async_threads(training: Training, iterations: int, update: float) -> None:
    """The same with an actor in a thread: the Python code of the actor and the learner compete for the GIL."""
    made: queue.Queue[int] = queue.Queue(QUEUE)

    def act() -> None:
        while True:
            with profile("collect"):
                training.env_steps()
                training.policy_forward()
                made.put(ENVS)

    threading.Thread(target=act, daemon=True).start()
    learn(training, iterations, update, made.get)


def learn(training: Training, iterations: int, update: float, receive: Callable[[], int]) -> None:
    for _ in range(iterations):
        get_profiler().iteration()
        for _ in range(2 * STEPS):
            get_profiler().add_steps(receive())
            training.update(update)


TOPOLOGIES: dict[str, tuple[Callable[[Training, int], None], Callable[[float], None]]] = {
    "serial": (serial, python_code),
    "threads": (threads, released),
    "threads_gil": (threads, python_code),
    "processes": (processes, python_code),
    "async_actor": (partial(asynchronous, update=170), python_code),
    "async_learner": (partial(asynchronous, update=680), python_code),
    "async_balanced": (partial(asynchronous, update=340), python_code),
    "async_threads": (partial(async_threads, update=170), python_code),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("topology", choices=TOPOLOGIES)
    parser.add_argument("--iterations", type=int, default=10**6)
    parser.add_argument("--speeds")
    options = parser.parse_args()
    train, env_work = TOPOLOGIES[options.topology]
    train(Training(Speeds(options.speeds), env_work), options.iterations)


if __name__ == "__main__":
    main()

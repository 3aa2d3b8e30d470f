"""A training with about 10^5 spans per second and four worker processes, for benchmarks/live_cost.py.

The driver computes all the time and exchanges a message with each worker once per piece of work. It writes the time at
which each iteration ended to the file descriptor that is its argument.
"""

from __future__ import annotations

import multiprocessing
import struct
import sys
from multiprocessing.connection import Connection
from os import write
from time import monotonic

from rlprof import add_steps, iteration, profile

WORKERS = 4
PIECES = 100
"""Pieces of work per iteration, each with 68 spans of the driver."""


def work(connection: Connection) -> None:
    while connection.recv() is not None:
        with profile("env_step"):
            sum(range(3_000))
        connection.send(True)


def main() -> None:
    output = int(sys.argv[1])
    context = multiprocessing.get_context("fork")
    pairs = [context.Pipe() for _ in range(WORKERS)]
    for number, (_, theirs) in enumerate(pairs):
        context.Process(target=work, args=(theirs,), name=f"env-{number}", daemon=True).start()
    connections = [ours for ours, _ in pairs]
    tree = [(profile(f"outer_{i}"), [profile(f"inner_{i}_{j}") for j in range(4)] * 4) for i in range(4)]
    receive = profile("env_wait", wait=True)
    while True:
        with iteration():
            for _ in range(PIECES):
                for connection in connections:
                    connection.send(True)
                for outer, inners in tree:
                    with outer:
                        for inner in inners:
                            with inner:
                                sum(range(1_500))
                with receive:
                    for connection in connections:
                        connection.recv()
                add_steps(WORKERS)
        write(output, struct.pack("d", monotonic()))


if __name__ == "__main__":
    main()

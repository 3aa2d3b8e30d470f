"""The protocol between the controller of an experiment (arm.py) and the training that it controls (training.py).

There are two pipes. Where an iteration begins, the training sends a message: its length as LENGTH, then a `Boundary` as
JSON. Then it waits for one byte, the number of iterations until the next message. If the controller closes the pipe
instead, the training exits.
"""

from __future__ import annotations

import struct

import msgspec

PIPES = "RLPROF_ITERATIONS"
"""READ,WRITE,LEDGER: two file descriptors, and 1 if messages include the ledger, which takes longer to send."""

ARM = "RLPROF_ARM"
"""A random word that all processes of an arm inherit. The controller finds them by it when it ends the arm."""

SLOWDOWNS = "RLPROF_SLOWDOWNS"
"""The file with the slowdown of each operation, and the names of the operations, as JSON: see slowdown_memory.py."""

START = "rlprof.experiment.training:start"
"""What `rlprof.recording.environment.CONTROLLER` names in an experiment."""

LENGTH = struct.Struct("<I")
MOST_ITERATIONS = 255
"""What fits into the byte that the controller sends."""


class Boundary(msgspec.Struct):
    """The training where an iteration begins: `wall_ns` and `cpu_ns` since the last wait, the rest since the start."""

    wall_ns: int
    cpu_ns: int
    """CPU time of all threads of the process; with the ledger, of its child processes too."""
    steps: int
    episodes: int
    ledger: dict[str, int]
    """Wall time in ns by the path of operations, such as `rollout/env_step`."""
    calls: dict[str, int]


def pack(boundary: Boundary) -> bytes:
    body = msgspec.json.encode(boundary)
    return LENGTH.pack(len(body)) + body


def unpack(body: bytes) -> Boundary:
    """The message without its length."""
    return msgspec.json.decode(body, type=Boundary)

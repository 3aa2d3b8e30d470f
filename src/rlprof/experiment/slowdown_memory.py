"""The memory by which the controller of an experiment slows operations down. All processes of the training share it.

The core reads it at each call of an operation: see its slowdown.c. The layout is in ledger/rows.py.
"""

from __future__ import annotations

import json
import mmap
import struct
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rlprof.errors import RlprofError
from rlprof.experiment.protocol import SLOWDOWNS
from rlprof.ledger.profiler import Profiler
from rlprof.ledger.rows import SLOWDOWN, SlowdownRecord
from rlprof.recording.environment import Environment

_FRACTIONS = struct.Struct("=3d")
_SAMPLED = struct.Struct("=2q")
"""The first and the last fields of a record, written without the others: the core adds to those at any time."""
_SAMPLING = struct.Struct("=q")

SAMPLE_NS = 500_000
BETWEEN_SECONDS = 0.002
SWITCH_SECONDS = 0.0001
REST_SECONDS = 0.02
"""Between two looks at `sampling` while it is off."""


@dataclass(frozen=True, slots=True)
class Slowdown:
    """How an operation is slowed down, as parts of what a call takes."""

    spin: float = 0.0
    """More computing, as a part of its CPU time."""
    held: float = 0.0
    """The part of that computing that holds the GIL."""
    sleep: float = 0.0
    """More sleeping, as a part of its duration."""


class SlowdownMemory:
    """A mapped file, so that processes that are started later find it."""

    def __init__(self, path: Path, names: Sequence[str], create: bool = False) -> None:
        self.path = path
        self.names = tuple(names)
        size = SLOWDOWN.size * len(self.names) + _SAMPLING.size
        if create:
            path.write_bytes(bytes(size))
        with path.open("r+b") as file:
            self.memory = mmap.mmap(file.fileno(), size)

    def variables(self) -> dict[str, str]:
        return {SLOWDOWNS: json.dumps([str(self.path), self.names])}

    @classmethod
    def from_environment(cls, environment: Environment) -> SlowdownMemory:
        path, names = json.loads(environment[SLOWDOWNS])
        return cls(Path(path), names)

    def set(self, name: str, slowdown: Slowdown) -> None:
        _FRACTIONS.pack_into(self.memory, self._place(name), slowdown.spin, slowdown.held, slowdown.sleep)

    def record(self, name: str) -> SlowdownRecord:
        """What the slowdown of an operation did, summed over all processes since the start. Times are in ns."""
        return SlowdownRecord._make(SLOWDOWN.unpack_from(self.memory, self._place(name)))

    @property
    def sampling(self) -> bool:
        """True while the training samples which operations need the GIL."""
        return bool(_SAMPLING.unpack_from(self.memory, SLOWDOWN.size * len(self.names))[0])

    @sampling.setter
    def sampling(self, wanted: bool) -> None:
        _SAMPLING.pack_into(self.memory, SLOWDOWN.size * len(self.names), wanted)

    def add_sample(self, name: str, sampled_ns: int, progress_ns: int) -> None:
        """Called by the training's own process only."""
        place = self._place(name) + SLOWDOWN.size - _SAMPLED.size
        before = _SAMPLED.unpack_from(self.memory, place)
        _SAMPLED.pack_into(self.memory, place, before[0] + sampled_ns, before[1] + progress_ns)

    def _place(self, name: str) -> int:
        return SLOWDOWN.size * self.names.index(name)


def start_slowdowns(profiler: Profiler, environment: Environment, samples: bool) -> None:
    """Slow operations down in this process, as the memory says."""
    if profiler.core != "c":
        raise RlprofError("operations can only be slowed down with rlprof's C core, which is not built here")
    memory = SlowdownMemory.from_environment(environment)
    profiler.ledger.slow_down(memory.memory, memory.names)
    if samples:
        threading.Thread(target=_sample, args=(profiler, memory), name="rlprof samples", daemon=True).start()


def _sample(profiler: Profiler, memory: SlowdownMemory) -> None:
    """A thread that makes progress while this one holds the GIL computes without the GIL."""
    usual = sys.getswitchinterval()
    while True:
        time.sleep(BETWEEN_SECONDS if memory.sampling else REST_SECONDS)
        # At the usual 5 ms, this thread would hardly ever get the GIL except where another thread releases it itself.
        sys.setswitchinterval(SWITCH_SECONDS if memory.sampling else usual)
        if memory.sampling:
            for name in memory.names:
                memory.add_sample(name, *profiler.ledger.sample(name, SAMPLE_NS))

"""Operations that are slowed down by a known part of what they cost: memory that whoever experiments and the processes
of the training share. The core reads it at each call: see its dose.c."""

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
from rlprof.ledger.profiler import Profiler
from rlprof.recording.environment import DOSES, Environment

_DOSE = struct.Struct("=3d5q")
_SEEN = struct.Struct("=2q")
_SIZE = _DOSE.size + _SEEN.size
_SAMPLES = struct.Struct("=q")

SAMPLE_NS = 500_000
BETWEEN_SECONDS = 0.002
SWITCH_SECONDS = 0.0001
REST_SECONDS = 0.02
"""While nobody wants samples."""


@dataclass(frozen=True, slots=True)
class Dose:
    """How an operation is slowed down: parts of what a call takes."""

    spin: float = 0.0
    """Of its CPU time, computed more."""
    held: float = 0.0
    """Of that, with the GIL."""
    sleep: float = 0.0
    """Of its duration, slept more."""


@dataclass(frozen=True, slots=True)
class Given:
    """What became of it, over all processes since the start."""

    calls: int
    cpu_ns: int
    wall_ns: int
    """Of the calls, as they were."""
    added_ns: int
    missed: int
    """Calls in asyncio tasks, that cannot be slowed down alone."""
    sampled_ns: int
    """Threads inside the operation, while another kept the GIL."""
    progress_ns: int
    """CPU time that they got meanwhile."""


class Doses:
    """The memory. A file, so that processes that are started later find it."""

    def __init__(self, path: Path, names: Sequence[str], create: bool = False) -> None:
        self.path = path
        self.names = tuple(names)
        size = _SIZE * len(self.names) + _SAMPLES.size
        if create:
            path.write_bytes(bytes(size))
        with path.open("r+b") as file:
            self.memory = mmap.mmap(file.fileno(), size)

    def variable(self) -> str:
        """For the environment of a training."""
        return json.dumps([str(self.path), self.names])

    @classmethod
    def named_by(cls, environment: Environment) -> Doses:
        path, names = json.loads(environment[DOSES])
        return cls(Path(path), names)

    def give(self, name: str, dose: Dose) -> None:
        struct.pack_into("=3d", self.memory, self._place(name), dose.spin, dose.held, dose.sleep)

    def given(self, name: str) -> Given:
        _, _, _, *figures = _DOSE.unpack_from(self.memory, self._place(name))
        return Given(*figures, *_SEEN.unpack_from(self.memory, self._place(name) + _DOSE.size))

    @property
    def sampling(self) -> bool:
        """Whether the training is to look who has the GIL."""
        return bool(_SAMPLES.unpack_from(self.memory, _SIZE * len(self.names))[0])

    @sampling.setter
    def sampling(self, wanted: bool) -> None:
        _SAMPLES.pack_into(self.memory, _SIZE * len(self.names), wanted)

    def saw(self, name: str, sampled_ns: int, progress_ns: int) -> None:
        """Only the training's own process does."""
        place = self._place(name) + _DOSE.size
        before = _SEEN.unpack_from(self.memory, place)
        _SEEN.pack_into(self.memory, place, before[0] + sampled_ns, before[1] + progress_ns)

    def _place(self, name: str) -> int:
        return _SIZE * self.names.index(name)


def take_doses(profiler: Profiler, environment: Environment, samples: bool) -> None:
    """This process is experimented with, as are those that it starts."""
    if profiler.core != "c":
        raise RlprofError("operations can only be slowed down with rlprof's C core, which is not built here")
    doses = Doses.named_by(environment)
    profiler.ledger.slow_down(doses.memory, doses.names)
    if samples:
        threading.Thread(target=_sample, args=(profiler, doses), name="rlprof samples", daemon=True).start()


def _sample(profiler: Profiler, doses: Doses) -> None:
    """Who gets on while this thread keeps the GIL computes without it."""
    usual = sys.getswitchinterval()
    while True:
        time.sleep(BETWEEN_SECONDS if doses.sampling else REST_SECONDS)
        # At the usual 5 ms, this thread would hardly ever have the GIL but where somebody lets go of it by himself.
        sys.setswitchinterval(SWITCH_SECONDS if doses.sampling else usual)
        if doses.sampling:
            for name in doses.names:
                doses.saw(name, *profiler.ledger.sample(name, SAMPLE_NS))

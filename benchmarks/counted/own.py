"""The counts and times that a training takes itself, to be compared with rlprof's.

The environment variable `OWN` names the file for them. Steps that only fill a buffer and steps of an evaluation do not
count, and programs pause their clock for them.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, sleep, thread_time

steps = 0
iterations = 0
_running_since: float | None = None
_seconds = 0.0
_phases: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])


def resume() -> None:
    """Start or continue the clock of the training."""
    global _running_since
    _running_since = perf_counter()


def pause() -> None:
    """Stop the clock: what follows is not training."""
    global _running_since, _seconds
    if _running_since is not None:
        _seconds += perf_counter() - _running_since
        _running_since = None


@contextmanager
def paused() -> Iterator[None]:
    pause()
    yield
    resume()


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Measure the wall and CPU time of this thread in a phase."""
    wall, cpu = perf_counter(), thread_time()
    yield
    _phases[name][0] += perf_counter() - wall
    _phases[name][1] += thread_time() - cpu


def computes_and_sleeps(computes: float, sleeps: float) -> None:
    """Use the CPU for some seconds, then sleep for some seconds: a phase with a known share of both."""
    until = thread_time() + computes
    while thread_time() < until:
        pass
    sleep(sleeps)


def write() -> None:
    """Write the file. Call it once, at the end."""
    pause()
    counted = {"steps": steps, "iterations": iterations, "seconds": _seconds, "phases": dict(_phases)}
    Path(os.environ["OWN"]).write_text(json.dumps(counted))

"""What a training counts and times by itself, to be compared with what rlprof says of it.

`OWN` in the environment names the file for it. Steps that only fill a buffer and steps of an evaluation are not
counted, and their time is not training time: programs pause their clock for them.
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
    """Training begins, or goes on."""
    global _running_since
    _running_since = perf_counter()


def pause() -> None:
    """What comes now is not training."""
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
    """Wall and CPU time of this thread in a phase, as the program itself sees them."""
    wall, cpu = perf_counter(), thread_time()
    yield
    _phases[name][0] += perf_counter() - wall
    _phases[name][1] += thread_time() - cpu


def computes_and_sleeps(computes: float, sleeps: float) -> None:
    """So much CPU time, then so much time without: a phase with a known share of both."""
    until = thread_time() + computes
    while thread_time() < until:
        pass
    sleep(sleeps)


def write() -> None:
    """At the end, once."""
    pause()
    said = {"steps": steps, "iterations": iterations, "seconds": _seconds, "phases": dict(_phases)}
    Path(os.environ["OWN"]).write_text(json.dumps(said))

"""The options of the trainings, and a stopwatch with which each training measures itself.

The environment variable `ANSWERS_TRUTH` names the file for the result. The stopwatch runs from the first training step
to the last. Evaluations are part of the wall time but not of the training's own seconds.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

_started = 0.0
_outside = 0.0
_section = 0.0
_nested = 0
_steps = 0
_marks: list[tuple[float, int, float]] = []


def arguments(iterations: int, explanation: str | None = None) -> argparse.Namespace:
    """Parse the options that every training has."""
    parser = argparse.ArgumentParser(description=explanation)
    parser.add_argument("--iterations", type=int, default=iterations, help="length of the training")
    parser.add_argument("--fix", action="store_true", help="train with the faster variant")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def start() -> None:
    """The training begins. Imports, workers and a prefill come before."""
    global _started
    _started = perf_counter()


def iteration(steps: int) -> None:
    """An iteration ends, in which the training made this many environment steps."""
    global _steps
    _steps += steps
    _marks.append((perf_counter() - _started - _outside, _steps, _section))


@contextmanager
def section() -> Iterator[None]:
    """Measure the part of the training that this training is about."""
    global _section, _nested
    began = perf_counter()
    _nested += 1
    try:
        yield
    finally:
        _nested -= 1
        if not _nested:
            _section += perf_counter() - began


@contextmanager
def outside() -> Iterator[None]:
    """Do something that is not training: an evaluation."""
    global _outside
    began = perf_counter()
    yield
    _outside += perf_counter() - began


def write() -> None:
    """Write the result, once, right after the last step or update."""
    wall = perf_counter() - _started
    ends = [mark[0] for mark in _marks]
    lengths = sorted(end - begin for begin, end in zip([0.0, *ends], ends))
    found = {
        "steps": _steps,
        "iterations": len(_marks),
        "seconds": wall - _outside,
        "wall": wall,
        "began": _started,
        "ended": _started + wall,
        "section": _section,
        "first": {"seconds": _marks[0][0], "steps": _marks[0][1], "section": _marks[0][2]},
        "median_iteration": lengths[len(lengths) // 2],
    }
    if "ANSWERS_TRUTH" in os.environ:
        Path(os.environ["ANSWERS_TRUTH"]).write_text(json.dumps(found))

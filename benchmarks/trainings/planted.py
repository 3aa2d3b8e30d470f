"""Delays of a known length at a known place, and how long they and the operations around them really took."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from time import perf_counter, sleep

PLACES = ("env", "policy", "advantage", "optimizer")

_chosen = ""
_delay = 0.0
_waited = 0.0
_taken = dict.fromkeys(PLACES, 0.0)
_calls = dict.fromkeys(PLACES, 0)


def arguments(explanation: str | None) -> argparse.Namespace:
    """The options that every training has."""
    global _chosen, _delay
    parser = argparse.ArgumentParser(description=explanation)
    parser.add_argument("--iterations", type=int, default=10, help="number of iterations")
    parser.add_argument("--steps", type=int, default=128, help="steps per environment and iteration")
    parser.add_argument("--envs", type=int, default=8, help="number of environments")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plant", choices=PLACES, default="", help="operation that gets delays")
    parser.add_argument("--ms", type=float, default=10.0, help="length of each delay")
    options = parser.parse_args()
    _chosen, _delay = options.plant, options.ms / 1e3
    return options


def planted(place: str) -> None:
    """Wait here if this is the chosen place."""
    global _waited
    if place == _chosen:
        began = perf_counter()
        sleep(_delay)
        _waited += perf_counter() - began


class stamped:  # noqa: N801 - it is used like a function
    """Times an operation in which a delay may be planted."""

    def __init__(self, place: str) -> None:
        self.place = place

    def __enter__(self) -> None:
        self.began = perf_counter()

    def __exit__(self, *_: object) -> None:
        _taken[self.place] += perf_counter() - self.began
        _calls[self.place] += 1


def tell() -> None:
    """Write the delays, and the time of every operation, to the file that PLANTED names."""
    path = os.environ.get("PLANTED")
    if path:
        Path(path).write_text(json.dumps({"waited": _waited, "taken": _taken, "calls": _calls}))

"""Waits of a known length at a known place, and how long they and the operations around them really took."""

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
    """What every training here takes."""
    global _chosen, _delay
    parser = argparse.ArgumentParser(description=explanation)
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--steps", type=int, default=128, help="of each environment in an iteration")
    parser.add_argument("--envs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plant", choices=PLACES, default="", help="where to wait")
    parser.add_argument("--ms", type=float, default=10.0, help="how long, each time")
    options = parser.parse_args()
    _chosen, _delay = options.plant, options.ms / 1e3
    return options


def planted(place: str) -> None:
    """Wait here, if this is the place."""
    global _waited
    if place == _chosen:
        began = perf_counter()
        sleep(_delay)
        _waited += perf_counter() - began


class stamped:  # noqa: N801 - a block of code reads so
    """The operation that a wait may be planted in, from end to end."""

    def __init__(self, place: str) -> None:
        self.place = place

    def __enter__(self) -> None:
        self.began = perf_counter()

    def __exit__(self, *_: object) -> None:
        _taken[self.place] += perf_counter() - self.began
        _calls[self.place] += 1


def tell() -> None:
    """Write what was planted, and what every operation took, to the file that PLANTED names."""
    path = os.environ.get("PLANTED")
    if path:
        Path(path).write_text(json.dumps({"waited": _waited, "taken": _taken, "calls": _calls}))

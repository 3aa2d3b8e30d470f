"""Delays of a known length at a known place, and how long they really were."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from time import perf_counter, sleep

PLACES = ("env", "policy", "advantage", "optimizer")

_chosen = ""
_seconds = 0.0
_delay = 0.0
_calls = 0


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
    global _seconds, _calls
    if place == _chosen:
        began = perf_counter()
        sleep(_delay)
        _seconds += perf_counter() - began
        _calls += 1


def tell() -> None:
    """Write what was planted to the file that PLANTED names."""
    path = os.environ.get("PLANTED")
    if path:
        Path(path).write_text(json.dumps({"place": _chosen, "seconds": _seconds, "calls": _calls}))

"""rlprof shows where every second of reinforcement-learning training goes.

import rlprof

with rlprof.record("cartpole") as recording:
    for _ in range(100):
        with rlprof.iteration():
            with rlprof.profile("env_step"):
                observation, reward, *_ = env.step(action)
            rlprof.add_steps(1)

with rlprof.open_session(recording.folder) as session:
    print(session.accounts())
"""

# ruff: noqa: E402 - before the other imports, which take most of the time in which a command starts
from rlprof.interrupts import be_silent_while_starting

be_silent_while_starting()

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rlprof.ledger.device import Device
from rlprof.ledger.functions import (
    add_episodes,
    add_steps,
    disable,
    enable,
    iteration,
    profile,
    profile_function,
    reset,
    snapshot,
)
from rlprof.ledger.hooks import RlprofWarning
from rlprof.ledger.profiler import Iteration, Profiler, get_profiler
from rlprof.ledger.snapshot import Account, Lane, Node, Snapshot, SpanCost

if TYPE_CHECKING:
    from rlprof.api import record
    from rlprof.capture.torch.capture import TorchCapture
    from rlprof.recording.join import join_session
    from rlprof.recording.recording import Recording
    from rlprof.session.reader import Session, open_session

    __version__: str

get_global_profiler = get_profiler

# Imported when first used: a program that only has spans in it should not wait for SQLite, psutil, msgspec or torch.
_LAZY = {
    "Recording": "rlprof.recording.recording",
    "Session": "rlprof.session.reader",
    "TorchCapture": "rlprof.capture.torch.capture",
    "join_session": "rlprof.recording.join",
    "open_session": "rlprof.session.reader",
    "record": "rlprof.api",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    if name == "__version__":
        return import_module("importlib.metadata").version("rlprof")
    raise AttributeError(f"module 'rlprof' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "Account",
    "Device",
    "Iteration",
    "Lane",
    "Node",
    "Profiler",
    "Recording",
    "RlprofWarning",
    "Session",
    "Snapshot",
    "SpanCost",
    "TorchCapture",
    "__version__",
    "add_episodes",
    "add_steps",
    "disable",
    "enable",
    "get_global_profiler",
    "get_profiler",
    "iteration",
    "join_session",
    "open_session",
    "profile",
    "profile_function",
    "record",
    "reset",
    "snapshot",
]

if os.environ.get("RLPROF") == "1":
    import_module("rlprof.run.start").start()

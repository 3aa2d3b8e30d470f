"""rlprof tells where every second of reinforcement-learning training goes.

from rlprof import get_profiler, profile

get_profiler().enable()
with profile("env_step"):
    observation, reward, *_ = env.step(action)
print(get_profiler().snapshot().account("env_step").ledger_ns)
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rlprof.ledger.device import Device
from rlprof.ledger.hooks import RlprofWarning
from rlprof.ledger.profiler import Iteration, Profiler, get_profiler
from rlprof.ledger.snapshot import Account, Lane, Node, Snapshot, SpanCost

if TYPE_CHECKING:
    from rlprof.api import record
    from rlprof.capture.torch.capture import TorchCapture
    from rlprof.recording.recording import Recording

_profiler = get_profiler()

profile = _profiler.profile
profile_function = _profiler.profile_function
enable = _profiler.enable
disable = _profiler.disable
reset = _profiler.reset
iteration = _profiler.iteration
snapshot = _profiler.snapshot


get_global_profiler = get_profiler


def __getattr__(name: str) -> Any:
    # Recording needs SQLite, psutil and msgspec; a program that only has spans in it should not wait for them.
    if name in ("record", "Recording"):
        return getattr(import_module("rlprof.api"), name)
    if name == "TorchCapture":
        return import_module("rlprof.capture.torch.capture").TorchCapture
    raise AttributeError(f"module 'rlprof' has no attribute {name!r}")


__all__ = [
    "Account",
    "Device",
    "Iteration",
    "Lane",
    "Node",
    "Profiler",
    "Recording",
    "RlprofWarning",
    "Snapshot",
    "SpanCost",
    "TorchCapture",
    "disable",
    "enable",
    "get_global_profiler",
    "get_profiler",
    "iteration",
    "profile",
    "profile_function",
    "record",
    "reset",
    "snapshot",
]

if os.environ.get("RLPROF") == "1":
    import_module("rlprof.run.start").start()

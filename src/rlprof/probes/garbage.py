"""Python's garbage collector: its runs are counted and timed by the ledger, in C, through gc.callbacks."""

from __future__ import annotations

import gc
from types import ModuleType

from rlprof.probes.patches import Patches


def attach_collector(collector: ModuleType, patches: Patches) -> None:
    callback = patches.profiler.ledger.collected
    collector.callbacks.append(callback)

    def undo() -> None:
        if callback in collector.callbacks:  # the program may have removed it
            collector.callbacks.remove(callback)

    patches.at_undo(undo)


COLLECTOR = gc.__name__

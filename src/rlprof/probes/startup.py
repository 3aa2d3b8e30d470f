"""Start-up: the work of a program before its training, such as imports and making environments and networks.

A span named `startup` is open from the beginning. It ends with the driver's first span that does not only wait. When
the training begins, with an iteration or with `end_startup`, the unattributed time since then becomes start-up too.
"""

from __future__ import annotations

from rlprof.ledger.catalogue import STARTUP
from rlprof.ledger.profiler import Profiler, get_profiler


def begin_startup(profiler: Profiler) -> None:
    """Open the span. Has an effect only on the driver's thread, while recording."""
    profiler.ledger.begin_startup(profiler.profile(STARTUP))


def end_startup(profiler: Profiler | None = None) -> None:
    """The training begins. Only the first call has an effect; later ones cost next to nothing."""
    (profiler or get_profiler()).ledger.end_startup()

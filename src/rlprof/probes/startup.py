"""What a program does before its training: imports, making environments and networks.

It has no spans of its own, and would be unattributed. So a span named `startup` is open from the start on, and gives
way to the driver's first span that does not only wait. When the training begins, with an iteration or when somebody
says so, what was unattributed since is start-up, too.
"""

from __future__ import annotations

from rlprof.ledger.catalogue import STARTUP
from rlprof.ledger.profiler import Profiler, get_profiler


def begin_startup(profiler: Profiler) -> None:
    """On the driver's thread, with recording on; else nothing happens."""
    profiler.ledger.begin_startup(profiler.profile(STARTUP))


def end_startup(profiler: Profiler | None = None) -> None:
    """The training begins. Costs next to nothing, and nothing happens twice."""
    (profiler or get_profiler()).ledger.end_startup()

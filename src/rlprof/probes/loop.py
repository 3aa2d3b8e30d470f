"""The state of a training's loop, which the rules in `phase_rules` read and change.

Every call of an environment, a network or an optimizer passes through it. So it is written in C (core/loop.c, compiled
into the ledger's core), and again in Python (loop_twin.py) for a profiler without the C core.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlprof.ledger.interface import Span
from rlprof.ledger.profiler import Profiler

if TYPE_CHECKING:
    from rlprof.ledger._core import Loop

NONE, ROLLOUT, UPDATE, PREFILL, EVALUATION = range(5)
"""The phases of a loop, as core/loop.h numbers them."""


def new_loop(profiler: Profiler, rules: Any, acts: Span, learns: Span, inside_env: Span) -> Loop:
    """The loop of one training, for the profiler's core.

    rules: called where something may change; has the methods of `PhaseRules`.
    acts, learns, inside_env: spans of forward passes that choose actions, that learn, and inside an environment.
    """
    if profiler.core == "c":
        from rlprof.ledger._core import Loop  # noqa: PLC0415 - not built everywhere
    else:
        from rlprof.probes.loop_twin import Loop  # type: ignore[assignment]  # noqa: PLC0415 - the same in Python
    return Loop(profiler.ledger, rules, acts, learns, inside_env)

"""The loop counts environment steps and episodes, unless the program counts them itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from rlprof.probes.patches import Patches


def let_others_count(patches: Patches, loop: Any) -> None:
    """When the program first calls `add_steps` or `add_episodes`, the loop stops counting them: the program knows
    better what to count."""
    for what in ("steps", "episodes"):
        patches.replace(patches.profiler, f"add_{what}", partial(_counted_by_another, patches.profiler, loop, what))


def _counted_by_another(profiler: Any, loop: Any, what: str, add: Callable[[Any], None]) -> Callable[[Any], None]:
    def first(number: Any) -> None:
        setattr(profiler, f"add_{what}", add)
        if getattr(loop, f"counts_{what}") and isinstance(number, int):
            number = max(0, number - getattr(loop, f"counted_{what}"))  # the loop has counted these already
        setattr(loop, f"counts_{what}", False)
        add(number)

    return first

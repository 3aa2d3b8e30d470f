"""What the arguments and results of unknown functions say: the size of a batch, and how many episodes have ended."""

from __future__ import annotations

from typing import Any


def leading_dimension(argument: Any) -> Any:
    """None if unknown. In a mapping or sequence, the first element decides."""
    for _ in range(4):
        shape = getattr(argument, "shape", None)
        if shape is not None:
            return shape[0] if len(shape) else None
        if isinstance(argument, dict):
            argument = list(argument.values())
        argument = argument[0] if isinstance(argument, (tuple, list)) and argument else None
    return None


def episodes_ended(result: Any) -> int:
    """Number of episodes that a step has ended, if it returned no arrays of truth values."""
    _, _, terminated, truncated, _ = result
    return sum(map(bool, (one or other for one, other in zip(terminated, truncated))))

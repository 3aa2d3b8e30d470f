"""Categories of operations that only one training has, and rlprof's catalogue therefore does not know."""

from __future__ import annotations

from rlprof import profile


def declare(**names: str) -> None:
    """Give operations a category once, before their first span: `declare(environment="net_step net_reset")`."""
    for category, operations in names.items():
        for operation in operations.split():
            profile(operation, category=category)

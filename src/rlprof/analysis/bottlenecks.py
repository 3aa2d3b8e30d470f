"""Which operations deserve attention? A score, and recommendations at fixed thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rlprof.analysis.operations import Operation
from rlprof.ledger.catalogue import BESIDE_TRAINING, PHASES

WEIGHTS = {"time": 40, "per_call": 30, "memory": 15, "device_memory": 15}
"""Weights of the parts of a score. They sum to 100."""

CRITICAL_SHARE = 30.0
"""Percent of the training time."""
SLOW_NS = 100_000_000
LARGE_BYTES = 100 * 1024 * 1024
LEAF = 0.99
"""Least fraction of its calls' time that is an operation's own if it calls nothing. The rest is rlprof's cost."""


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """An operation and its score. Each part is between 0 and 1, so units never mix; the score is their weighted sum."""

    operation: str
    category: str
    calls: int
    score: float
    """0 to 100."""
    time: float
    per_call: float
    """The operation's own work per call as a fraction of 100 ms, at most 1. Without what it called or waited for."""
    memory: float
    """The most memory one call needed as a fraction of 100 MB, at most 1."""
    device_memory: float
    share: float
    """Percent of the training time."""
    own_ns: float | None
    """Per call."""
    memory_rise: int | None
    device_rise: int | None


@dataclass(frozen=True, slots=True)
class Recommendation:
    """A threshold that an operation passes."""

    severity: str
    """CRITICAL, SLOW, MEMORY or GPU MEMORY."""
    operation: str
    value: float
    """Percent of the training time, ns per call, or bytes."""
    threshold: float
    text: str


def bottlenecks(operations: Sequence[Operation], min_calls: int = 1) -> tuple[Bottleneck, ...]:
    """The operations with at least `min_calls` calls, the highest score first."""
    found = [_score(operation) for operation in _of_the_training(operations, min_calls)]
    return tuple(sorted(found, key=lambda bottleneck: (-bottleneck.score, bottleneck.operation)))


def _score(operation: Operation) -> Bottleneck:
    # Only its own time: otherwise every caller of a slow operation would score as high, and the root highest of all.
    own = max(0, operation.self_ns - operation.waited_ns) / operation.calls if operation.calls else None
    parts: dict[str, Any] = {
        "time": operation.share / 100,
        "per_call": (own or 0) / SLOW_NS,
        "memory": (operation.memory_rise or 0) / LARGE_BYTES,
        "device_memory": (operation.device_rise or 0) / LARGE_BYTES,
    }
    parts = {name: min(1.0, part) for name, part in parts.items()}
    copied = ("operation", "category", "calls", "share", "memory_rise", "device_rise")
    score = sum(WEIGHTS[name] * part for name, part in parts.items())
    return Bottleneck(**{name: getattr(operation, name) for name in copied}, score=score, own_ns=own, **parts)


def recommendations(operations: Sequence[Operation], min_calls: int = 1) -> tuple[Recommendation, ...]:
    """Every threshold that an operation passes, the most severe first."""
    found = [item for operation in _of_the_training(operations, min_calls) for item in _recommend(operation)]
    severities = ("CRITICAL", "SLOW", "MEMORY", "GPU MEMORY")
    return tuple(sorted(found, key=lambda item: (severities.index(item.severity), -item.value)))


def _of_the_training(operations: Sequence[Operation], min_calls: int) -> list[Operation]:
    """Without phases that only structure the tree. A phase with nothing inside is an operation like any other."""
    found = [item for item in operations if item.calls >= min_calls and item.operation not in BESIDE_TRAINING]
    return [item for item in found if item.operation not in PHASES or _own_share(item) >= LEAF]


def _own_share(operation: Operation) -> float:
    """The part of its calls' time that is not in what it calls."""
    return operation.self_ns / operation.busy_ns if operation.busy_ns else 1.0


def _recommend(operation: Operation) -> list[Recommendation]:
    name = operation.operation
    found = []
    if operation.share > CRITICAL_SHARE:
        text = f"{name} takes {operation.share:.1f}% of the training time. Making it faster helps most"
        found.append(Recommendation("CRITICAL", name, operation.share, CRITICAL_SHARE, text))
    # A call whose time is mostly in what it calls is a container. The slow part is listed under its own name.
    if operation.mean_ns is not None and operation.mean_ns > SLOW_NS and _own_share(operation) > 0.5:
        text = f"{name} takes {operation.mean_ns / 1e6:,.0f} ms per call, most of it in its own code"
        found.append(Recommendation("SLOW", name, operation.mean_ns, SLOW_NS, text))
    for severity, what, rise in (
        ("MEMORY", "memory", operation.memory_rise),
        ("GPU MEMORY", "device memory", operation.device_rise),
    ):
        if rise is not None and rise > LARGE_BYTES:
            text = f"{name} needs up to {rise / 2**20:,.0f} MB more {what} than was in use when it started"
            found.append(Recommendation(severity, name, rise, LARGE_BYTES, text))
    return found

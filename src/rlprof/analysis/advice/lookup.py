"""What several rules ask of the facts: outermost calls of some operations, their share, how often the envs stepped."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rlprof.analysis.advice.arithmetic import fraction, number
from rlprof.analysis.breakdown import UNATTRIBUTED, Row
from rlprof.analysis.facts import Facts
from rlprof.analysis.operations import Operation

CONSIDERABLE = 0.10
"""Of the wall time. What takes less cannot bring 1.12x even if it vanished; two runs differ as much by noise."""

ENOUGH_CALLS = 20
"""For a mean or a ratio of calls to say something."""

NOT_COLLECTING = ("learning", "storage", "teacher", "system")
"""Inside these the policy is called for another reason than to choose the next action."""

AGAIN = "Run again with the change and compare the two sessions with `rlprof report`"
"""How most checks begin."""


@dataclass(frozen=True, slots=True)
class Outermost:
    """The calls of some operations that lie in no other call of them."""

    operations: tuple[str, ...]
    """The largest time first."""
    calls: dict[str, int]
    ledger_ns: dict[str, float]
    """What they called included."""

    @property
    def most_calls(self) -> int:
        """Of one operation: `policy_forward` and `value_forward` for the same step are not two batches."""
        return max(self.calls.values(), default=0)

    @property
    def total_ns(self) -> float:
        return sum(self.ledger_ns.values())


def outermost(facts: Facts, wanted: Callable[[Row], bool], never_below: Iterable[str] = ()) -> Outermost:
    """Find them in the call tree, but not below operations of the categories `never_below`."""
    return _outermost(facts.breakdown.rows, wanted, never_below)


def _outermost(rows: Iterable[Row], wanted: Callable[[Row], bool], never_below: Iterable[str]) -> Outermost:
    avoided = set(never_below)
    calls: dict[str, int] = {}
    ledger: dict[str, float] = {}
    inside: int | None = None
    for row in rows:
        if inside is not None and row.depth > inside:
            continue
        inside = None
        if wanted(row):
            calls[row.operation] = calls.get(row.operation, 0) + max(0, row.calls)
            ledger[row.operation] = ledger.get(row.operation, 0.0) + number(row.subtree_ledger_ns)
            inside = row.depth
        elif row.category in avoided:
            inside = row.depth
    names = sorted(ledger, key=lambda name: (-ledger[name], name))
    return Outermost(tuple(names), calls, ledger)


def share_of(facts: Facts, operations: Iterable[Operation]) -> float:
    """Of the wall time, between 0 and 1: what these operations themselves are accountable for."""
    return fraction(sum(number(operation.ledger_ns) for operation in operations), facts.breakdown.wall_ns)


def unattributed(facts: Facts) -> Row | None:
    """The time outside of all spans."""
    return next((row for row in facts.breakdown.rows if row.category == UNATTRIBUTED), None)


def names_of(operations: Iterable[Operation]) -> tuple[str, ...]:
    """The largest ledger time first."""
    return tuple(operation.operation for operation in sorted(operations, key=lambda item: -number(item.ledger_ns)))


def computing(operations: Iterable[Operation]) -> float | None:
    """The share of their own time, between 0 and 1, that they spent on a CPU. None where that was not measured."""
    known = [operation for operation in operations if operation.cpu_ns is not None]
    own = sum(number(operation.self_ns) for operation in known)
    return fraction(sum(number(operation.cpu_ns) for operation in known), own) if own else None


def env_step_calls(facts: Facts) -> int:
    """Calls of `env_step` to train on: of a vector where that is what is timed, or of the environments one by one."""
    return outermost(facts, lambda row: row.operation == "env_step", ("system",)).most_calls


def policy_calls(facts: Facts) -> Outermost:
    """The policy's calls that choose actions."""
    return outermost(facts, lambda row: row.category == "policy", NOT_COLLECTING)


def acting_calls(facts: Facts) -> int:
    """How often the policy was asked for actions. An actor, a critic and a scaler that are called before the same step
    were asked once, so this is never more than the calls of `env_step` beside them, in the same part of the tree."""
    asked = 0
    for rows in _parts(facts):
        policy = _outermost(rows, lambda row: row.category == "policy", NOT_COLLECTING).most_calls
        steps = _outermost(rows, lambda row: row.operation == "env_step", ("system",)).most_calls
        asked += min(policy, steps) if steps else policy
    return asked


def _parts(facts: Facts) -> list[list[Row]]:
    """The call tree by what is outermost; what has nothing inside is one part, for it stands beside each other."""
    parts: list[list[Row]] = []
    for row in facts.breakdown.rows:
        if row.depth == 0 or not parts:
            parts.append([])
        parts[-1].append(row)
    alone = [part[0] for part in parts if len(part) == 1 or _asks_or_steps(part[0])]
    return [alone, *(part for part in parts if len(part) > 1 and not _asks_or_steps(part[0]))]


def _asks_or_steps(row: Row) -> bool:
    return row.category == "policy" or row.operation == "env_step"

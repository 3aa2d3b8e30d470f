"""What several rules look up in the facts: outermost calls of operations, their share, how often envs stepped.

Facts may come from a JSON file of unknown origin. Zeros, None and numbers beyond the range of a float must neither
raise nor lead to advice, so the rules compute with `number`, `ratio` and `fraction`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rlprof.analysis.breakdown import Row
from rlprof.analysis.facts import Facts
from rlprof.analysis.operations import Operation

HUGE = 1e18
"""More ns, bytes or calls than any training has: 30 years, an exabyte. Larger values are cut to this."""

CONSIDERABLE = 0.10
"""Least share of the training time. Removing less gains less than 1.12x, by which equal runs differ too."""

ENOUGH_CALLS = 20
"""With fewer calls, a mean or a ratio of calls is not reliable."""

NOT_COLLECTING = ("learning", "storage", "teacher", "system")
"""Inside operations of these categories, the policy is not called to choose the next action."""


def number(value: float | None) -> float:
    """A float between 0 and HUGE. None and negative values become 0."""
    return float(min(HUGE, max(0.0, value))) if value is not None else 0.0


def ratio(part: float | None, whole: float | None) -> float:
    """Between 0 and HUGE; 0 if `whole` is 0."""
    divisor = number(whole)
    return min(HUGE, number(part) / divisor) if divisor else 0.0


def fraction(part: float | None, whole: float | None) -> float:
    """Between 0 and 1."""
    return min(1.0, ratio(part, whole))


@dataclass(frozen=True, slots=True)
class Outermost:
    """The calls of some operations that are not inside another call of these operations."""

    operations: tuple[str, ...]
    """Largest time first."""
    calls: dict[str, int]
    ledger_ns: dict[str, float]
    """Including what they called."""

    @property
    def most_calls(self) -> int:
        """Not their sum: `policy_forward` and `value_forward` for one step are not two batches."""
        return max(self.calls.values(), default=0)

    @property
    def total_ns(self) -> float:
        return sum(self.ledger_ns.values())


def outermost(rows: Iterable[Row], wanted: Callable[[Row], bool], never_below: Sequence[str] = ()) -> Outermost:
    """Find the `wanted` rows of the call tree, but not below operations of the categories `never_below`."""
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
        elif row.category in never_below:
            inside = row.depth
    names = sorted(ledger, key=lambda name: (-ledger[name], name))
    return Outermost(tuple(names), calls, ledger)


def share_of(facts: Facts, operations: Iterable[Operation]) -> float:
    """Share of the training time, 0 to 1, that these operations themselves account for."""
    return fraction(sum(number(operation.ledger_ns) for operation in operations), facts.breakdown.training_ns)


def names_of(operations: Iterable[Operation]) -> tuple[str, ...]:
    """The largest ledger time first."""
    return tuple(operation.operation for operation in sorted(operations, key=lambda item: -number(item.ledger_ns)))


def computing(operations: Iterable[Operation]) -> float | None:
    """Fraction of their own time, 0 to 1, that these operations spent on a CPU. None if that was not measured."""
    known = [operation for operation in operations if operation.cpu_ns is not None]
    own = sum(number(operation.self_ns) for operation in known)
    return fraction(sum(number(operation.cpu_ns) for operation in known), own) if own else None


def at_work(facts: Facts, operations: Iterable[Operation]) -> float | None:
    """The same with the time in which the main thread was ready to run but had no core: on a busy machine an operation
    is off the CPU without waiting for anything."""
    on_cpu = computing(operations)
    held_up = min(0.95, number(facts.resources.held_up_mean) / 100)
    return None if on_cpu is None else min(1.0, on_cpu / (1 - held_up))


def env_step_calls(facts: Facts) -> int:
    """Calls of `env_step` outside of evaluation: of the vector environment if that is timed, else of each one."""
    return outermost(facts.breakdown.rows, lambda row: row.operation == "env_step", ("system",)).most_calls


def policy_calls(facts: Facts) -> Outermost:
    """The policy's calls that choose actions."""
    return outermost(facts.breakdown.rows, lambda row: row.category == "policy", NOT_COLLECTING)


def acting_calls(facts: Facts) -> int:
    """How often the policy chose actions. An actor and a critic that are called before the same step count once, so
    this is never more than the calls of `env_step` in the same part of the tree."""
    calls = 0
    for rows in _parts(facts):
        policy = outermost(rows, lambda row: row.category == "policy", NOT_COLLECTING).most_calls
        steps = outermost(rows, lambda row: row.operation == "env_step", ("system",)).most_calls
        calls += min(policy, steps) if steps else policy
    return calls


def _parts(facts: Facts) -> list[list[Row]]:
    """The call tree, one part per outermost operation. Outermost operations without children form one part together."""
    parts: list[list[Row]] = []
    for row in facts.breakdown.rows:
        if row.depth == 0 or not parts:
            parts.append([])
        parts[-1].append(row)

    def stands_alone(part: list[Row]) -> bool:
        return len(part) == 1 or part[0].category == "policy" or part[0].operation == "env_step"

    alone = [part[0] for part in parts if stands_alone(part)]
    return [alone, *(part for part in parts if not stands_alone(part))]

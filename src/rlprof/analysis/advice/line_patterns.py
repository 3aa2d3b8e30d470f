"""Lines that are known to be slow: the text of a hot line, and what it calls in libraries, tell what it does.

Each pattern speaks only if the lines of one function that match it take a tenth of the training time. How much of that
a change saves is a range, set by judgement: benchmarks/answers.py compares it with measured fixes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from rlprof.analysis.advice.check import compare_with_change
from rlprof.analysis.advice.finding import Finding
from rlprof.analysis.advice.lines import (
    HotLine,
    Match,
    beside_networks,
    function_of,
    gain_of,
    inside_networks,
    networks_of,
    shown_function,
)
from rlprof.analysis.advice.lookup import CONSIDERABLE, number
from rlprof.analysis.advice.python_loop import is_loop
from rlprof.analysis.advice.slow_lines import HISTORY, OF_HISTORY, PATTERNS, Pattern
from rlprof.analysis.advice.slowing_down import growing_operation
from rlprof.analysis.code import Line
from rlprof.analysis.drift import drift
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, many
from rlprof.ledger.catalogue import PHASES

SURE = 3.0
"""Standard deviations from chance, and GROWN times the time per step: an operation takes longer and longer."""
GROWN = 1.3
ONE_BY_ONE = "entries one by one"
TENSORS_IN_LOOP = re.compile(r"\.append\((?!(?:np|numpy)\.)")


def line_patterns(facts: Facts) -> list[Finding]:
    """One finding per rule at most, about the function in which it takes longest. Lines of one function that all handle
    entries of lists one by one have one cause, whatever each of them does."""
    networks = networks_of(facts)
    envs = {item.operation for item in facts.of_category("environment", "rendering")}
    main_loop = _main_loop(facts, networks)
    growing = growing_operation(facts)
    groups: dict[tuple[str, str, str], list[tuple[Pattern, HotLine]]] = {}
    beside = [hot for hot in beside_networks(facts) if not _runs_network(facts, networks, hot)]
    # In a network, a loop over the samples of a batch collects tensors. What it does with them is no other problem.
    inside = [hot for hot in inside_networks(facts) if not (hot.line.loop and TENSORS_IN_LOOP.search(hot.line.source))]
    for hot in [*beside, *inside]:
        pattern = next((one for one in PATTERNS if one.fits(hot.line) and _is_mistake(facts, envs, one, hot)), None)
        if growing is not None and facts.code.main_operation(hot.line) == growing:
            pattern = _with_history(facts, growing, pattern, hot)
        if pattern is not None:
            function = hot.line.file, function_of(hot.line)
            together = pattern.one_by_one and function != main_loop
            groups.setdefault((*function, ONE_BY_ONE if together else pattern.rule), []).append((pattern, hot))
    loops = [hot for hot in [*beside, *inside] if is_loop(hot.line)]
    found: dict[str, tuple[Pattern, Match]] = {}
    for (*where, kind), group in groups.items():
        lines = tuple(hot for _, hot in group)
        if kind == ONE_BY_ONE:  # a loop around these lines, which prepares what they convert or collect
            around = (hot for hot in loops if [hot.line.file, function_of(hot.line)] == where)
            lines += tuple(hot for hot in around if hot not in lines)
        matched = Match(lines, sum(hot.line.share for hot in lines))
        pattern = _leading(group)
        before = found.get(pattern.rule)
        if matched.share >= CONSIDERABLE and matched.is_sure and (before is None or matched.share > before[1].share):
            found[pattern.rule] = pattern, matched
    return [_finding(facts, *one) for one in found.values()]


def _with_history(facts: Facts, growing: str, pattern: Pattern | None, hot: HotLine) -> Pattern | None:
    """The pattern of a line in an operation that takes longer and longer. Then the history that it goes through is the
    cause, and not what it does with it. A replay buffer is a history that should be kept."""
    if pattern is None:
        return HISTORY if HISTORY.fits(hot.line) else None
    operation = facts.operation(growing)
    stores = pattern.rule == "restacking" and operation is not None and operation.category == "storage"
    picks = re.search(r"\bfor\b.*\bin\b", hot.line.source) is not None
    return pattern if stores or picks or pattern.rule not in OF_HISTORY else HISTORY


def _leading(group: Sequence[tuple[Pattern, HotLine]]) -> Pattern:
    """The pattern whose lines take longest, unless one of them says more."""
    times: Counter[Pattern] = Counter()
    for pattern, hot in group:
        times[pattern] += hot.line.ns  # type: ignore[assignment]
    telling = [pattern for pattern in times if pattern.telling]
    return telling[0] if telling else max(times, key=lambda pattern: times[pattern] * (1 if pattern is HISTORY else 2))


def _main_loop(facts: Facts, networks: set[str]) -> tuple[str, str] | None:
    """File and function of the loop around the networks. It does many things that have nothing in common."""
    times: Counter[tuple[str, str]] = Counter()
    for line in (line for name in networks for line in facts.code.outer_loops.get(name, ())):
        times[line.file, function_of(line)] += number(line.ns)  # type: ignore[assignment]
    return max(times, key=times.__getitem__, default=None)


def _runs_network(facts: Facts, networks: set[str], hot: HotLine) -> bool:
    """True for a line that mostly calls a network. What else is in it belongs to the call."""
    return sum(facts.code.ns_in(name, hot.line) for name in networks) > hot.line.ns


def _is_mistake(facts: Facts, envs: set[str], pattern: Pattern, hot: HotLine) -> bool:
    """False for what an environment does as its work."""
    operation = facts.code.main_operation(hot.line)
    if not pattern.in_env or operation not in envs or re.search(pattern.in_env, hot.line.source):
        return True
    return pattern.unless_growing and _grows(facts, operation)


def _grows(facts: Facts, operation: str) -> bool:
    found = drift(facts.series)
    return found is not None and any(
        grown.operation == operation and grown.z >= SURE and grown.after_ns >= GROWN * grown.before_ns
        for grown in found.grown
    )


def _finding(facts: Facts, pattern: Pattern, matched: Match) -> Finding:
    place, others = matched.place, len(matched.lines) - 1
    where = f"{place.where} in {shown_function(place)}"
    if others:
        where = f"{place.where} (with {many(others, 'more line')} in {shown_function(place)})"
    return Finding(
        rule=pattern.rule,
        cause=f"{where} {pattern.does}: {as_percent(matched.share)} of the training time.",
        place=place,
        operations=_operations(facts, matched),
        evidence=matched.evidence() + _calls(place),
        change=pattern.change,
        gain=gain_of(facts, matched, pattern.left),
        check=compare_with_change(facts),
    )


def _operations(facts: Facts, matched: Match) -> tuple[str, ...]:
    """The operations that have a considerable part of the lines' time. A phase is never named: its own code is."""
    lines = [hot.line for hot in matched.lines]
    whole = sum(line.ns for line in lines)
    times = {name: sum(facts.code.ns_in(name, line) for line in lines) for name in matched.operations}
    return tuple(name for name, ns in times.items() if name not in PHASES and ns >= CONSIDERABLE * whole)


def _calls(place: Line) -> tuple[str, ...]:
    return (f"Most of its time is in {place.below[-1]}.",) if place.below else ()

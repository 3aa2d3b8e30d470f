"""Lines of the user's code that take a large part of the training time, and what they look like."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from math import sqrt

from rlprof.analysis.advice.finding import Gain
from rlprof.analysis.advice.gain import Left, gain_if, with_side_effects
from rlprof.analysis.advice.lookup import fraction, number, ratio
from rlprof.analysis.code import Line
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, duration
from rlprof.analysis.topology import own
from rlprof.ledger.catalogue import PHASES

NETWORKS = ("policy", "learning", "teacher")
"""Categories of operations that run networks."""

PLAIN_PYTHON = re.compile(
    r"(?<![\w.])(?:np|numpy|math|random|statistics|pd|json)\.|\.tolist\(|\bfor\b.*\bin\b|(?<![\w.])float\(|\.append\("
)
"""Text of a line that computes with something else than tensors."""

SAMPLE_NS = 50_000_000
"""About the time between two samples."""
ENOUGH_SAMPLES = 5
"""Least number of samples in the lines of a finding."""


@dataclass(frozen=True, slots=True)
class HotLine:
    """One line, in all operations in which it was seen."""

    line: Line
    """Its share is a share of the training time."""
    operations: dict[str, float]
    """By operation: the fraction of its own time that the line takes."""


def hot_lines(facts: Facts, operations: Collection[str] = ()) -> list[HotLine]:
    """All lines, hottest first, as far as they run in these operations (default: in any)."""
    found: dict[tuple[str, int], HotLine] = {}
    for operation, lines in facts.code.lines.items():
        for line in lines if not operations or operation in operations else ():
            before = found.get((line.file, line.line))
            ns = number(line.ns) + (before.line.ns if before else 0.0)
            shared = {**(before.operations if before else {}), operation: fraction(line.share, 1.0)}
            below = before.line.below if before and before.line.ns > line.ns else line.below
            direct = number(line.ns) * line.direct + (before.line.ns * before.line.direct if before else 0.0)
            share = fraction(ns, facts.breakdown.training_ns)
            whole = replace(line, ns=ns, share=share, below=below, direct=fraction(direct, ns))
            found[line.file, line.line] = HotLine(whole, shared)
    return sorted(found.values(), key=lambda hot: -hot.line.ns)


@dataclass(frozen=True, slots=True)
class Match:
    """Lines of one function that look alike."""

    lines: tuple[HotLine, ...]
    """Hottest first."""
    share: float
    """Share of the training time of all of them, 0 to 1."""

    @property
    def is_sure(self) -> bool:
        """False if so few samples may be chance."""
        return sum(hot.line.ns for hot in self.lines) >= ENOUGH_SAMPLES * SAMPLE_NS

    @property
    def place(self) -> Line:
        return self.lines[0].line

    @property
    def operations(self) -> tuple[str, ...]:
        names = (name for hot in self.lines for name in hot.operations)
        return tuple(dict.fromkeys(names))

    def evidence(self) -> tuple[str, ...]:
        """Every line with its share, as far as it matters."""
        shown = [hot.line for hot in self.lines[:3] if hot.line.share >= 0.1 * self.share]
        return tuple(
            f"{line.where} `{shortened(line.source)}` takes {as_percent(line.share)} of the training time "
            f"({duration(line.ns)})."
            for line in shown
        )


def match(
    facts: Facts,
    source: str,
    below: str = "",
    operations: Iterable[str] = (),
) -> Match | None:
    """The function whose lines take longest among those that match: by their text, or by what they call in libraries.

    source, below: regular expressions for the text, and for a `module:function`.
    operations: only their own time; all if empty.
    """
    wanted, path = re.compile(source), re.compile(below)
    among = set(operations)

    def fits(line: Line) -> bool:
        by_source = bool(source) and wanted.search(line.source) is not None
        return by_source or (bool(below) and any(path.search(name) for name in line.below))

    return hottest_function(hot for hot in hot_lines(facts, among) if fits(hot.line))


def hottest_function(lines: Iterable[HotLine]) -> Match | None:
    """The lines of the function in which they take longest together."""
    groups: dict[tuple[str, str], list[HotLine]] = {}
    for hot in lines:
        groups.setdefault((hot.line.file, function_of(hot.line)), []).append(hot)
    matches = [Match(tuple(group), sum(hot.line.share for hot in group)) for group in groups.values()]
    return max(matches, key=lambda one: one.share, default=None)


def networks_of(facts: Facts) -> set[str]:
    """Operations inside which a line runs a network, whatever else it does. Phases are none of them."""
    return {item.operation for item in facts.of_category(*NETWORKS)} - PHASES


def beside_networks(facts: Facts) -> list[HotLine]:
    """The hot lines outside of operations that run a network."""
    among = facts.code.lines.keys() - networks_of(facts)
    return hot_lines(facts, among) if among else []


def inside_networks(facts: Facts) -> list[HotLine]:
    """The hot lines of networks that compute in plain Python or numpy, such as a feature extractor with a loop."""
    networks = networks_of(facts)

    def is_inside(line: Line) -> bool:
        within = sum(facts.code.ns_in(name, line) for name in networks)
        return 2 * within > line.ns and not any(name.startswith("torch") for name in line.below)

    return [hot for hot in hot_lines(facts) if PLAIN_PYTHON.search(hot.line.source) and is_inside(hot.line)]


def function_of(line: Line) -> str:
    """The function of a line as its author would call it: a comprehension is part of the function around it."""
    name = re.sub(r"(?:(?:\.<locals>)?\.|^)<(?:listcomp|setcomp|dictcomp|genexpr|lambda)>.*$", "", line.function)
    return name or "<module>"


def shown_function(line: Line) -> str:
    """`collect()`, or `the main program`."""
    name = function_of(line)
    return "the main program" if name == "<module>" else f"{name}()"


def gain_of(facts: Facts, found: Match, left: Left) -> Gain:
    """The gain if of these lines only a part is left. How long they take is known as well as samples tell."""
    samples = max(1.0, ratio(facts.breakdown.training_ns, SAMPLE_NS))
    error = (
        2 * sqrt(max(found.share * max(0.0, 1 - found.share), 1 / samples) / samples) / found.share
        if found.share
        else 0.0
    )
    parts: dict[str, Left] = {}
    for operation in found.operations:
        share = min(1.0, sum(hot.operations.get(operation, 0.0) for hot in found.lines))
        parts[own(operation)] = Left(
            1 - share * (1 - left.estimate),
            max(0.0, 1 - min(1.0, share * (1 + error)) * (1 - left.least)),
            min(1.0, 1 - share * max(0.0, 1 - error) * (1 - left.most)),
        )
    gain = gain_if(facts, parts)
    most = 1 / (1 - min(0.98, found.share * (1 + error)))  # not even without these lines
    high = with_side_effects(Gain(most, most, most)).high
    return Gain(min(gain.estimate, most), min(gain.low, most), min(gain.high, high))


def sampled_gain(facts: Facts, share: float) -> Gain:
    """The gain if a share of the training time vanishes that is known from samples only, on the driver's thread."""
    samples = max(1.0, number(facts.breakdown.training_ns) / SAMPLE_NS)
    error = 2 * sqrt(max(share * (1 - share), 1 / samples) / samples)
    ends = (1 / (1 - min(0.98, max(0.0, part))) for part in (share, 0.7 * (share - error), share + error))
    return with_side_effects(Gain(*ends))


def place_of(facts: Facts, *operations: str) -> Line | None:
    """The line that takes longest in these operations, with its share of the training time."""
    wanted = [hot for hot in hot_lines(facts) if hot.operations.keys() & set(operations)]

    def time_in(hot: HotLine) -> float:
        lines = (line for name in operations for line in facts.code.within(name))
        return sum(line.ns for line in lines if (line.file, line.line) == (hot.line.file, hot.line.line))

    found = max(wanted, key=time_in, default=None)
    return found.line if found is not None else None


def loop_of(facts: Facts, *operations: str, outer: bool = False) -> Line | None:
    """The line in the innermost or outermost loop of the user's code around these operations: where to change how often
    they run. Its share is a share of the training time."""
    loops = facts.code.outer_loops if outer else facts.code.inner_loops
    found = max((line for name in operations for line in loops.get(name, ())), key=lambda line: line.ns, default=None)
    training = facts.breakdown.training_ns
    return replace(found, share=min(1.0, found.ns / training)) if found is not None and training else None


def beside(facts: Facts, operation: str) -> dict[str, float]:
    """By phase: the fraction of its own time that the loop around an operation takes besides the operation. A policy's
    call has more than its networks: making distributions, sampling, converting. If environments are stepped in the same
    function, only the line of the operation counts."""
    line = loop_of(facts, operation)
    if line is None:
        return {}
    stepping = {(one.file, function_of(one)) for one in facts.code.inner_loops.get("env_step", ())}
    alone = (line.file, function_of(line)) not in stepping

    def at_line(name: str) -> float:
        return sum(one.ns for one in facts.code.inner_loops.get(name, ()) if one.where == line.where)

    def in_loop(phase: str) -> float:
        own = (one for one in facts.code.within(phase) if one.loop and one.file == line.file)
        return sum(one.ns for one in own if function_of(one) == function_of(line))

    found = {}
    for phase in PHASES:
        row = facts.operation(phase)
        if row is not None and row.ledger_ns > 0 and (at_line(phase) or in_loop(phase)):
            around = max(at_line(phase) - at_line(operation), in_loop(phase) if alone else 0.0)
            found[phase] = fraction(around, row.ledger_ns)
    return found


def shortened(source: str, most: int = 60) -> str:
    one_line = " ".join(source.split())
    return one_line if len(one_line) <= most else one_line[: most - 1] + "…"

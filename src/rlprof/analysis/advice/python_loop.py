"""A loop in the user's own Python code takes a large part of the training time."""

from __future__ import annotations

import re

from rlprof.analysis.advice.check import compare_with_change
from rlprof.analysis.advice.finding import Finding
from rlprof.analysis.advice.gain import Left
from rlprof.analysis.advice.lines import (
    Match,
    beside_networks,
    function_of,
    gain_of,
    hottest_function,
    inside_networks,
    networks_of,
    shown_function,
)
from rlprof.analysis.advice.slow_lines import PATTERNS
from rlprof.analysis.code import Line
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, many
from rlprof.ledger.catalogue import PHASES

LARGE_SHARE = 0.15
"""Least share of the training time. Most trainings have some code of their own between the operations."""
SEQUENTIAL = re.compile(r"^([A-Za-z_][\w.]*)\s*(?:[-+*/%|&^]|//|\*\*)?=(?:(?<=[-+*/%|&^]=)|.*(?<![\w.])\1(?![\w.]))")
MOST_SEQUENTIAL = 0.5
"""Fraction of the time in lines that compute a number from its last value, such as `speed += force * dt`: a simulation
goes step by step, and no array replaces its loop."""
COMPREHENSION = re.compile(r"[\[({].*\bfor\b")
ELEMENT = re.compile(r"^[\w.]+\[(?:\w+|\.\.\.|:)(?:,\s*(?:\w+|\.\.\.|:))*\]\s*(?:[-+*/%|&^]|//|\*\*)?=(?!=)")
"""A line that assigns one element: `out[i, j] = f(x)`."""
ONE_LINE = (COMPREHENSION, ELEMENT, re.compile(r"\.append\("))
MOST_IN_ONE = 0.8
"""Lines of a loop in Python share its time. A single line that takes nearly all of it calls a slow function in C,
unless it is a loop itself or assigns one element."""
DIRECT = 0.5
"""Least fraction of a line's time in Python itself, or in functions in C that it calls."""


def python_loop(facts: Facts) -> Finding | None:
    """Speaks of lines in a loop, in a function that neither steps environments nor calls networks."""
    around = _functions_around(facts)
    beside = (hot for hot in beside_networks(facts) if (hot.line.file, function_of(hot.line)) not in around)
    inside = inside_networks(facts)
    found = hottest_function(hot for hot in [*beside, *inside] if is_loop(hot.line))
    if found is None or found.share < LARGE_SHARE or not found.is_sure:
        return None
    if found.lines[0] not in inside and _is_explained(found):
        return None
    source = found.place.source
    if found.place.share > MOST_IN_ONE * found.share and not any(one.search(source) for one in ONE_LINE):
        return None
    sequential = sum(hot.line.share for hot in found.lines if SEQUENTIAL.search(hot.line.source))
    if sequential > MOST_SEQUENTIAL * found.share:
        return None
    place, others = found.place, len(found.lines) - 1
    where = f"{place.where} (with {many(others, 'more line')})" if others else place.where
    return Finding(
        rule="python_loop",
        cause=f"{where} in {shown_function(place)} is a loop in Python: {as_percent(found.share)} of the training "
        "time.",
        place=place,
        operations=tuple(name for name in found.operations if name not in PHASES),
        evidence=found.evidence(),
        change="Compute all elements at once with numpy or torch: `np.where(x > 0, x, 0.1 * x)` instead of an `if` per "
        "element, `x[:, None] - x[None]` for all pairs. If that is not possible, compile the function with "
        "`numba.njit`, or keep results that do not change.",
        gain=gain_of(facts, found, Left(0.2, 0.0, 0.7)),
        check=compare_with_change(facts),
    )


def is_loop(line: Line) -> bool:
    """True if Python goes through the elements of something in this line, or in a loop around it."""
    return (line.loop or COMPREHENSION.search(line.source) is not None) and line.direct >= DIRECT


def _functions_around(facts: Facts) -> set[tuple[str, str]]:
    """Functions with a loop that calls networks, such as the training loop. Their lines do many things."""
    loops = (facts.code.inner_loops, facts.code.outer_loops)
    lines = (line for found in loops for name in networks_of(facts) for line in found.get(name, ()))
    return {(line.file, function_of(line)) for line in lines}


def _is_explained(found: Match) -> bool:
    """A pattern says more about most of these lines."""
    known = [hot.line.ns for hot in found.lines if any(pattern.fits(hot.line) for pattern in PATTERNS)]
    return 2 * sum(known) > sum(hot.line.ns for hot in found.lines)

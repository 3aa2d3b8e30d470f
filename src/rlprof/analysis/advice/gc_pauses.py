"""Python's garbage collector stops the training: too often, or because the program calls it."""

from __future__ import annotations

from rlprof.analysis.advice.check import compare_with_change
from rlprof.analysis.advice.finding import Finding
from rlprof.analysis.advice.gain import Left, gain_if
from rlprof.analysis.advice.lines import match
from rlprof.analysis.advice.lookup import fraction, number, ratio
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, count, duration
from rlprof.ledger.catalogue import PHASES
from rlprof.session.evidence import Generation

LEAST_SHARE = 0.05
"""Least share of the training time. 0.1 to 2 % are usual in trainings with torch."""

NAMES = ("young", "middle", "full")

BY_ITSELF = 5
"""Python collects the oldest generation after ten collections of the middle one, at most. If there are more than one
in five, the program calls gc.collect()."""

FREED = 100
"""Objects per run. If the collector frees more, the program makes reference cycles, and must collect sometimes."""


def gc_pauses(facts: Facts) -> Finding | None:
    """Speaks if the garbage collector took 5 % of the time since the training began."""
    generations = facts.evidence.collections
    spent = sum(number(generation.ns) for generation in generations)
    runs = sum(number(generation.runs) for generation in generations)
    share = fraction(spent, facts.breakdown.training_ns)
    if share < LEAST_SHARE or not runs:
        return None
    called = is_called(generations)
    freed = sum(number(generation.freed) for generation in generations)
    # The time is inside of whatever ran when a collection began, so all operations get shorter alike.
    saved = share * (0.97 if called else 0.9)
    left = Left(1 - saved, 1 - share, 1 - 0.6 * saved)
    tops = dict.fromkeys(row.operation for row in facts.breakdown.top if row.calls)
    found = match(facts, r"\bgc\.collect\(|(?<!\w)collect\(\)", r"^gc:") if called else None
    return Finding(
        rule="gc_pauses",
        cause=f"Python's garbage collector takes {as_percent(share)} of the training time"
        + (", because the program calls `gc.collect()`." if called else "."),
        place=found.place if found is not None else None,
        operations=_inside(facts),
        evidence=(
            *(_described(name, generation) for name, generation in zip(NAMES, generations) if generation.runs),
            f"Together {duration(spent)} of {duration(facts.breakdown.training_ns)}. {count(freed)} objects freed.",
        ),
        change=_change(called, ratio(freed, runs)),
        gain=gain_if(facts, dict.fromkeys(tops, left)),
        check=compare_with_change(facts),
    )


def is_called(generations: tuple[Generation, ...]) -> bool:
    """True if the program itself calls gc.collect()."""
    if len(generations) < 3:
        return False
    return number(generations[2].runs) >= 3 and BY_ITSELF * number(generations[2].runs) > number(generations[1].runs)


def _inside(facts: Facts) -> tuple[str, ...]:
    """The largest operation, which most pauses are in. No phase."""
    named = [item for item in facts.operations if item.operation not in PHASES]
    return (max(named, key=lambda item: number(item.ledger_ns)).operation,) if named else ()


def _described(name: str, generation: Generation) -> str:
    return (
        f"{count(generation.runs)} collections of the {name} generation: {duration(generation.ns)}, the longest "
        f"{duration(generation.longest_ns)}."
        if name != "full"
        else f"{count(generation.runs)} full collections: {duration(generation.ns)}, the longest "
        f"{duration(generation.longest_ns)}."
    )


def _change(called: bool, freed: float) -> str:
    if called:
        return (
            "Remove `gc.collect()` from the loop. Python frees most objects without it. If you need it for reference "
            "cycles, call it once every hundred iterations."
        )
    change = (
        "After everything is set up, before the loop: `import gc; gc.collect(); gc.freeze(); gc.set_threshold(50_000, "
        "20, 100)`. The objects that exist by then are never looked at again, and collections become rarer."
    )
    if freed >= FREED:
        change += " The program makes many reference cycles. Break them, or keep the first threshold below 10,000."
    return change
